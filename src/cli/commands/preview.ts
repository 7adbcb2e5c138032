import { runPreview } from '../../app/preview.ts';
import type { CliContext } from '../cli-context.ts';
import type { CommonFlags } from '../flags.ts';
import { FINISHES, perform } from '../perform.ts';
import { renderPreview } from '../render/preview.ts';
import { openTerminal } from '../terminal.ts';

export async function preview(this: CliContext, flags: CommonFlags, target: string): Promise<void> {
  await perform(this, {
    command: 'preview',
    interrupted: FINISHES,
    json: flags.json,
    terminal: openTerminal(this.node, flags.json),
    operation: (context) => runPreview({ run: target }, context),
    render: renderPreview,
  });
}
