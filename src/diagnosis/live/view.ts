/** What the judges of a living server share: the looks, what moved, and how a verdict is put together. Pure. */
import { formatDuration } from '../../base/units.ts';
import type { Account } from '../account.ts';
import { type DiagnoseOptions, diagnose } from '../diagnose.ts';
import { ruleOf } from '../rules/all.ts';
import type { Confidence, Phase, State, Verdict } from '../verdict.ts';
import type { Health, LiveState, LiveVerdict, Look } from './look.ts';

export interface LookInput {
  readonly account: Account;
  /** Oldest first, the last one is now; those of this launch only. `keepLooks` says which to keep. */
  readonly looks: readonly Look[];
  /** Someone told it to end: Aerie itself, or a person through it. */
  readonly isAskedToEnd?: boolean;
  /** How long requests may wait without a token; left out: by the engine's watchdog. */
  readonly workLimitMs?: number;
  readonly checkRemedy?: DiagnoseOptions['checkRemedy'];
}

export interface Change {
  readonly state: LiveState;
  readonly phase?: Phase | '';
  readonly code?: string;
  readonly confidence?: Confidence;
  readonly numbers?: Readonly<Record<string, number>>;
  readonly restartSameFlagsHelps?: boolean | null;
  readonly note?: string | undefined;
}

export interface Stillness {
  readonly stillForMs: number;
  readonly limitMs: number;
}

/** The verdict of the log, where nothing of the server has moved for so long. */
export function logVerdict({ checkRemedy }: LookInput, account: Account, stillMs: number): Verdict {
  return diagnose([{ file: '', account }], { stillMs, ...(checkRemedy === undefined ? {} : { checkRemedy }) });
}

/** The log's verdict with what the looks say instead. Another cause takes the log's evidence only where it is a log's. */
export function change(input: LookInput, base: Verdict, to: Change, still: Stillness, signs: readonly string[]): LiveVerdict {
  const { state, code, note } = to;
  const { progress, ...rest } = base;
  const kept = {
    ...rest,
    ...(state === 'initializing' && progress !== undefined ? { progress } : {}),
    ...{ state, phase: to.phase ?? base.phase, confidence: to.confidence ?? base.confidence },
    notes: note === undefined ? base.notes : [...base.notes, note],
    ...{ ...still, signs },
  };
  if (code === undefined || code === base.cause) return kept;
  const rule = ruleOf(code, asState(state));
  const remedy = rule.remedy({ facts: base.facts, numbers: to.numbers ?? {} });
  const added = input.checkRemedy?.(remedy, base.facts);
  return {
    ...kept,
    ...{ cause: rule.code, title: rule.title },
    remedy: added === undefined ? remedy : { ...remedy, text: `${remedy.text} ${added}` },
    restartSameFlagsHelps: to.restartSameFlagsHelps === undefined ? rule.restartSameFlagsHelps : to.restartSameFlagsHelps,
  };
}

function asState(state: LiveState): State | undefined {
  return state === 'absent' || state === 'unresponsive' || state === 'stopped' ? undefined : state;
}

export function sayHealth(health: Health | undefined): string {
  if (health === undefined) return 'health was not asked';
  if (health.kind === 'refused') return 'health: the connection was refused';
  if (health.kind === 'timeout') return `health: no answer in ${formatDuration(health.afterMs)}`;
  return `health: ${health.status}`;
}

/** 404 and 401 are answers of a server that lives; an empty body is as good as any. */
export function isWell(health: Health | undefined): boolean {
  return health?.kind === 'http' && health.status < 500;
}

export function isSick(health: Health | undefined): boolean {
  return health !== undefined && !isWell(health);
}
