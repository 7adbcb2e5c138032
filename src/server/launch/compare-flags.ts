/**
 * Flags as they were sent against those that the engine says it took. Pure.
 * Engines rewrite flags, mostly with a warning in the log; the list of arguments that they print shows what became of each.
 * Promises: what the list does not name is passed over; two spellings of one type are the same.
 */
import { isSameType } from '../../base/element-type.ts';
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import { FLAG_TABLES } from '../../capacity/plan-launch.ts';
import { type FlagValue, parseFlagWords } from '../../engine/launch-flags.ts';
import { type LaunchFlags, SGLANG_LINE, VLLM_LINE, wordsOf } from '../../engine/launching.ts';

export interface RewrittenFlag {
  /** As the run file has it, without dashes. */
  readonly name: string;
  readonly sent: string;
  readonly taken: string;
}

/** Where the engine is found is the launcher's business, and a path may be printed as the folder it led to. */
const NOT_COMPARED = new Set(['host', 'port', 'model-path', 'model', 'model-tag', 'api-key', 'admin-api-key']);

/** `logged`: by the engine's own names, `mem_fraction_static`. */
export function findRewritten(
  engine: PlannedEngine,
  flags: LaunchFlags,
  logged: Readonly<Record<string, string>>,
): readonly RewrittenFlag[] {
  const line = engine === 'vllm' ? VLLM_LINE : SGLANG_LINE;
  return Object.entries(flags).flatMap(([written, value]) => {
    const { values } = parseFlagWords(wordsOf({ [written]: value }, line), FLAG_TABLES[engine]);
    const [name, sent] = Object.entries(values)[0] ?? [written.replace(/^-+/, '').replaceAll('_', '-'), plainOf(value)];
    if (sent === undefined || NOT_COMPARED.has(name)) return [];
    const taken = takenOf(engine, name, logged);
    if (taken === undefined || isSame(name, sent, taken)) return [];
    return [{ name: written, sent: String(sent), taken: taken.slice(0, 80) }];
  });
}

/** A list is not printed in a shape that is read. */
function plainOf(value: LaunchFlags[string]): FlagValue | undefined {
  return typeof value === 'object' ? undefined : value;
}

function takenOf(engine: PlannedEngine, name: string, logged: Readonly<Record<string, string>>): string | undefined {
  const row = FLAG_TABLES[engine].rows.find((one) => one.name === name);
  const names = [name, ...(row?.aliases ?? [])].map((one) => one.replaceAll('-', '_'));
  const found = names.find((one) => Object.hasOwn(logged, one));
  return found === undefined ? undefined : logged[found];
}

function isSame(name: string, sent: FlagValue, taken: string): boolean {
  if (typeof sent === 'object') return true;
  if (typeof sent === 'boolean') return !/^(True|False)$/.test(taken) || (taken === 'True') === sent;
  if (typeof sent === 'number') return Number.isNaN(Number(taken)) ? taken !== 'None' : Number(taken) === sent;
  if (sent === taken || sent.toLowerCase() === 'auto') return true;
  return name.endsWith('dtype') && isSameType(sent, taken);
}
