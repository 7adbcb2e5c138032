/** Launches that ended, for tests of recovery: verdicts as the rules of diagnosis give them, with the figures of a log. */
import { findGpu } from '../../src/capacity/gpus.ts';
import { findKnownModel } from '../../src/capacity/known-models.ts';
import { readModelConfig } from '../../src/capacity/read-model-config.ts';
import type { LogFacts } from '../../src/diagnosis/log-facts.ts';
import type { Rule } from '../../src/diagnosis/rule.ts';
import { RULES } from '../../src/diagnosis/rules/all.ts';
import type { Verdict } from '../../src/diagnosis/verdict.ts';
import type { Flags, LaunchTry, RecoveryBasis } from '../../src/server/recovery/recovery.ts';
import type { PolicyRule } from '../../src/spec/run.ts';

function shapeOf(name: string): RecoveryBasis['shape'] {
  const known = findKnownModel(name);
  if (known === undefined) throw new Error(`the table has no ${name}`);
  return readModelConfig(known);
}

/** Kimi-K2.5 (INT4) on 8 × RTX PRO 6000. */
export const KIMI: RecoveryBasis = {
  shape: shapeOf('moonshotai/Kimi-K2.5'),
  gpu: findGpu('RTX PRO 6000'),
  observations: [],
};

export const OWNER: PolicyRule = {
  forbid: { kvCache: 'below-16-bit' },
  because: 'FP8 degrades it noticeably',
  by: 'model owner',
};

/** What the story's server printed at 0.93. */
export const AT_093: LogFacts = {
  lines: 100,
  engine: 'sglang',
  arguments: {},
  freeBeforeLoadGiB: 94.04,
  freeAfterLoadGiB: 21.71,
  weightsGiBPerGpu: 72.33,
  poolTokens: 231_127,
  freeAfterGraphsGiB: 0.82,
  maxRunningRequests: 2048,
  contextTokens: 262_144,
  chunkedPrefill: 8192,
  isReady: true,
  retractions: 0,
  samples: [],
};

export interface VerdictInput {
  readonly facts?: LogFacts;
  readonly numbers?: Readonly<Record<string, number>>;
  /** Evidence, where the rule's own example is not it. */
  readonly text?: string;
}

/** As `diagnose` would say it of a log in which this rule's sign stands. */
export function verdictFrom(rule: Rule, { facts = AT_093, numbers = {}, text = rule.example }: VerdictInput = {}): Verdict {
  return {
    state: rule.state,
    phase: rule.phase ?? 'serving',
    cause: rule.code,
    title: rule.title,
    confidence: 'high',
    evidence: [{ line: 97, text }],
    remedy: rule.remedy({ facts, numbers }),
    restartSameFlagsHelps: rule.restartSameFlagsHelps,
    notes: [],
    hypotheses: [],
    facts,
  };
}

export function verdictOfCause(cause: string, input: VerdictInput = {}): Verdict {
  const rule = RULES.find(({ code }) => code === cause);
  if (rule === undefined) throw new Error(`no rule has the code ${cause}`);
  return verdictFrom(rule, input);
}

export const STORY_FLAGS: Flags = { tp: 8, 'mem-fraction-static': 0.93, 'kv-cache-dtype': 'bf16' };

export function tryOf(verdict: LaunchTry['verdict'], more: Partial<LaunchTry> = {}): LaunchTry {
  return { flags: STORY_FLAGS, env: {}, verdict, wasReady: true, answered: 10, readyAt: 0, endedAt: 60_000, ...more };
}
