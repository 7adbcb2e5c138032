import { runRun } from '../../app/run.ts';
import type { RunFlags } from '../flags.ts';
import type { CliContext } from '../cli-context.ts';
import { perform } from '../perform.ts';
import { renderRun } from '../render/run.ts';
import { openTerminal } from '../terminal.ts';

export async function run(this: CliContext, flags: RunFlags, target: string): Promise<void> {
  const { retryFailed, amend, redo, strict } = flags;
  const input = { run: target, retryFailed, amend, strict, ...(redo === undefined ? {} : { redo }) };
  await perform(this, {
    command: 'run',
    json: flags.json,
    terminal: openTerminal(this.node, flags.json),
    operation: (context) => runRun(input, context),
    render: renderRun,
  });
}
