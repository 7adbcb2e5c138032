import { runDiagnose } from '../../app/diagnose.ts';
import type { CliContext } from '../cli-context.ts';
import type { DiagnoseFlags } from '../flags.ts';
import { perform } from '../perform.ts';
import { diagnoseData, isUnhealthy, renderDiagnosis } from '../render/diagnose.ts';
import { openTerminal } from '../terminal.ts';

export async function diagnose(this: CliContext, { json, now }: DiagnoseFlags, ...logs: string[]): Promise<void> {
  await perform(this, {
    command: 'diagnose',
    json,
    terminal: openTerminal(this.node, json),
    operation: ({ drain }) => runDiagnose({ logs, ...(now === undefined ? {} : { now }) }, drain),
    render: renderDiagnosis,
    data: diagnoseData,
    isNo: isUnhealthy,
  });
}
