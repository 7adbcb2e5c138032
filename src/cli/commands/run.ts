import { runRun } from '../../app/run.ts';
import type { RunFlags } from '../flags.ts';
import type { CliContext } from '../cli-context.ts';
import { perform } from '../perform.ts';
import { renderRun } from '../render/run.ts';
import { openTerminal } from '../terminal.ts';

export async function run(this: CliContext, flags: RunFlags, target: string): Promise<void> {
  const { json: _json, ...input } = flags;
  await perform(this, {
    command: 'run',
    json: flags.json,
    terminal: openTerminal(this.node, flags.json),
    operation: (context) => runRun({ run: target, ...input }, context),
    render: renderRun,
  });
}
