/**
 * The command line of the lookalike as a launcher: its own words, `--`, the words of the engine that it plays. Pure.
 * `--as sglang@0.5.8 --scenario FILE … -- --model-path X --port 8000 …`: a run file gives all up to `--`, Aerie what follows.
 */
import { AerieError } from '../../../base/errors.ts';
import type { PlannedEngine } from '../../../capacity/engine-launch.ts';

export interface AsWords {
  readonly engine: PlannedEngine;
  readonly version: string;
  /** The lookalike's own, without `--as`. */
  readonly own: readonly string[];
  readonly given: readonly string[];
}

/** undefined: no `--as`, so it is a surface and no launcher. Throws `usage.flag`. */
export function splitWords(args: readonly string[]): AsWords | undefined {
  const end = args.indexOf('--');
  const before = end === -1 ? args : args.slice(0, end);
  const at = before.findIndex((word) => word === '--as' || word.startsWith('--as='));
  if (at === -1) return undefined;
  const isJoined = before[at]?.startsWith('--as=') === true;
  const name = isJoined ? (before[at] ?? '').slice('--as='.length) : (before[at + 1] ?? '');
  const [, engine = '', version = ''] = /^(sglang|vllm)@v?(\d+\.\d+[\w.+-]*)$/.exec(name) ?? [];
  if (engine === '') throw wrong(`--as ${name} is not ENGINE@VERSION.`);
  if (end === -1) throw wrong('the words of the engine are missing.');
  return {
    engine: engine as PlannedEngine, // the pattern has no other
    version,
    own: [...before.slice(0, at), ...before.slice(at + (isJoined ? 1 : 2))],
    given: args.slice(end + 1),
  };
}

function wrong(message: string): AerieError {
  return new AerieError('usage.flag', message, {
    remedy:
      'node dist/programs/lookalike-engine.js --as sglang@0.5.8 [--scenario FILE] [--clock-rate X] … -- --model-path NAME …',
  });
}
