import { runRehearse } from '../../app/rehearse.ts';
import type { CliContext } from '../cli-context.ts';
import type { RehearseFlags } from '../flags.ts';
import { perform } from '../perform.ts';
import { renderRehearsal } from '../render/rehearse.ts';
import { openTerminal } from '../terminal.ts';

export async function rehearse(this: CliContext, { json, ...input }: RehearseFlags, run: string): Promise<void> {
  await perform(this, {
    command: 'rehearse',
    json,
    terminal: openTerminal(this.node, json),
    operation: (context) => runRehearse({ run, ...input }, context),
    render: renderRehearsal,
    isNo: ({ wentThrough }) => !wentThrough,
  });
}
