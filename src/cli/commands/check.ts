import { runCheck } from '../../app/check.ts';
import type { CliContext } from '../cli-context.ts';
import type { CheckFlags } from '../flags.ts';
import { perform } from '../perform.ts';
import { checkData, renderCheck } from '../render/check.ts';
import { openTerminal } from '../terminal.ts';

export async function check(this: CliContext, flags: CheckFlags, target: string): Promise<void> {
  const { maxLength, benchmarks } = flags;
  await perform(this, {
    command: 'check',
    json: flags.json,
    terminal: openTerminal(this.node, flags.json),
    operation: (context) =>
      runCheck(
        { run: target, ...(maxLength === undefined ? {} : { maxLength }), ...(benchmarks === undefined ? {} : { benchmarks }) },
        context,
      ),
    render: renderCheck,
    data: checkData,
    isNo: (report) => report.hasErrors || report.records === 0,
  });
}
