import { runExplain } from '../../app/explain.ts';
import type { CliContext } from '../cli-context.ts';
import type { CommonFlags } from '../flags.ts';
import { lookUp } from '../perform.ts';
import { renderExplain } from '../render/explain.ts';

export async function explain(this: CliContext, { json }: CommonFlags, code?: string): Promise<void> {
  await lookUp(this, { command: 'explain', json, render: renderExplain }, () => runExplain(code === undefined ? {} : { code }));
}
