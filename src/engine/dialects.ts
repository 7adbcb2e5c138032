/** The dialects there are, by the name people write in a run file. */
import type { Dialect, EngineName } from './dialect.ts';
import { embedded } from './embedded/embedded.ts';
import { openai } from './openai/openai.ts';
import { sglang } from './sglang/sglang.ts';
import { vllm } from './vllm/vllm.ts';

const DIALECTS: Readonly<Record<EngineName, Dialect>> = { embedded, vllm, sglang, openai };

export function dialectOf(engine: EngineName): Dialect {
  return DIALECTS[engine];
}
