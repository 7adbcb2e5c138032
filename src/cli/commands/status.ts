import { runStatus } from '../../app/status.ts';
import type { CommonFlags } from '../flags.ts';
import type { CliContext } from '../cli-context.ts';
import { perform } from '../perform.ts';
import { renderStatus } from '../render/status.ts';
import { openTerminal } from '../terminal.ts';

export async function status(this: CliContext, flags: CommonFlags, target: string): Promise<void> {
  await perform(this, {
    command: 'status',
    json: flags.json,
    terminal: openTerminal(this.node, flags.json),
    operation: (context) => runStatus({ run: target }, context),
    render: renderStatus,
  });
}
