/** What an engine of a version does that a scenario may say otherwise: its name for itself, ids in chats, words of refusals. Pure. */
import type { PlannedEngine } from '../../../capacity/engine-launch.ts';
import { isAtLeast } from '../../../engine/version.ts';
import type { Scenario } from '../scenario.ts';

export type Habits = Pick<Scenario, 'version' | 'ids' | 'refusals' | 'countsMessages'>;

export function habitsOf(engine: PlannedEngine, version: string): Habits {
  const from = (...least: [number, number, number]) => isAtLeast(version, least) ?? true;
  if (engine === 'sglang') {
    const ids = from(0, 5, 18) ? 'asked' : from(0, 5, 13) ? 'meta-info' : 'none';
    return { version, ids, refusals: 'sglang', countsMessages: false };
  }
  const refusals = from(0, 16, 0) ? 'vllm-newer' : from(0, 10, 0) ? 'vllm' : 'vllm-older';
  return { version, ids: from(0, 10, 2) ? 'asked' : 'none', refusals, countsMessages: true };
}
