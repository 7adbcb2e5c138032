import { runExport } from '../../app/export.ts';
import type { CliContext } from '../cli-context.ts';
import type { ExportFlags } from '../flags.ts';
import { perform } from '../perform.ts';
import { renderExport } from '../render/export.ts';
import { openTerminal } from '../terminal.ts';

export async function exportRecords(this: CliContext, flags: ExportFlags, target: string): Promise<void> {
  await perform(this, {
    command: 'export',
    json: flags.json,
    terminal: openTerminal(this.node, flags.json),
    operation: (context) => {
      const { json: _json, for: trainer, to, partition, ...rest } = flags;
      return runExport(
        {
          run: target,
          target: trainer,
          ...(to === undefined ? {} : { folder: to }),
          ...(partition === undefined ? {} : { partitions: partition }),
          ...rest,
        },
        context,
      );
    },
    render: renderExport,
  });
}
