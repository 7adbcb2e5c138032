import { runExport } from '../../app/export.ts';
import type { ExportFlags } from '../flags.ts';
import type { CliContext } from '../cli-context.ts';
import { perform } from '../perform.ts';
import { renderExport } from '../render/export.ts';
import { openTerminal } from '../terminal.ts';

export async function exportRecords(this: CliContext, flags: ExportFlags, target: string): Promise<void> {
  await perform(this, {
    command: 'export',
    json: flags.json,
    terminal: openTerminal(this.node, flags.json),
    operation: (context) =>
      runExport({ run: target, target: flags.for, ...(flags.to === undefined ? {} : { folder: flags.to }) }, context),
    render: renderExport,
  });
}
