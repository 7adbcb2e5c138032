import { runRun } from '../../app/run.ts';
import type { CommonFlags } from '../flags.ts';
import type { CliContext } from '../cli-context.ts';
import { perform } from '../perform.ts';
import { renderRun } from '../render/run.ts';
import { openTerminal } from '../terminal.ts';

export async function run(this: CliContext, flags: CommonFlags, target: string): Promise<void> {
  await perform(this, {
    command: 'run',
    json: flags.json,
    terminal: openTerminal(this.node, flags.json),
    operation: (context) => runRun({ run: target }, context),
    render: renderRun,
  });
}
