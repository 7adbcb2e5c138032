/** What a line hints at beside its message: which engine wrote it, whether several nodes are at work, where a traceback was raised. Pure. */
import type { LogEvent } from '../engine/log-event.ts';
import type { LoggedEngine } from './log-facts.ts';
import type { FoundLine } from './scan-lines.ts';
import type { Phase } from './verdict.ts';
import { watch } from './watch.ts';

/** Lines above a sign that say where it happened: a traceback of a deep model has some fifty frames of two lines. */
export const NEAR_LINES = 120;

/** SGLang's bracket of time, vLLM's process in round brackets, or a path of either. */
export function supposeEngine(text: string): LoggedEngine | undefined {
  if (/(?:^|[\s|])\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?(?: [A-Z]+\d+)*\] |\bsglang\b/i.test(text)) return 'sglang';
  return /\((?:EngineCore|APIServer|Worker|VllmWorker)\w*|\bvllm\b/i.test(text) ? 'vllm' : undefined;
}

export function spansNodes(text: string): boolean {
  const count = /n_?nodes['" =:]+(\d+)/i.exec(text)?.[1];
  if (count !== undefined) return Number(count) > 1;
  return /spans\s*across\s*nodes|--node-rank|dist[_-]init[_-]addr(?!=None)/i.test(text);
}

/** Where the traceback above a line was raised; '' where no frame says so. */
export function phaseOfFrames(found: FoundLine): Phase | '' {
  const above = found.before(NEAR_LINES).join('\n');
  return watch().frames.find(({ pattern }) => pattern.test(above))?.phase ?? '';
}

/** How much an event holds: figures that are there and are not nothing, and the pace of a bar. */
export function richness(event: LogEvent | undefined, text: string): number {
  if (event === undefined) return 0;
  const figures = Object.values(event).filter((value) => value !== 0 && value !== '').length;
  return 1 + figures + (/s\/it|it\/s/.test(text) ? 0.5 : 0);
}
