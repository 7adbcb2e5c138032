import { runCheck } from '../../app/check.ts';
import type { CommonFlags } from '../flags.ts';
import type { CliContext } from '../cli-context.ts';
import { perform } from '../perform.ts';
import { renderCheck } from '../render/check.ts';
import { openTerminal } from '../terminal.ts';

export async function check(this: CliContext, flags: CommonFlags, target: string): Promise<void> {
  await perform(this, {
    command: 'check',
    json: flags.json,
    terminal: openTerminal(this.node, flags.json),
    operation: (context) => runCheck({ run: target }, context),
    render: renderCheck,
    isNo: (report) => report.hasErrors || report.records === 0,
  });
}
