import { runStatus } from '../../app/status.ts';
import type { CliContext } from '../cli-context.ts';
import type { StatusFlags } from '../flags.ts';
import { perform } from '../perform.ts';
import { renderStatus } from '../render/status.ts';
import { openTerminal } from '../terminal.ts';

export async function status(this: CliContext, { json, follow }: StatusFlags, target: string): Promise<void> {
  await perform(this, {
    command: 'status',
    interrupted: 'the watching ends, the worker goes on',
    json,
    terminal: openTerminal(this.node, json),
    operation: (context) => runStatus({ run: target, follow }, context),
    render: renderStatus,
  });
}
