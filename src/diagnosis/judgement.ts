/** A cause in a state, before it is put into words. Pure data. */
import type { Sighting } from './account.ts';
import type { Rule } from './rule.ts';
import type { Confidence, Phase, State } from './verdict.ts';

export interface Judgement {
  readonly state: State;
  readonly phase: Phase | '';
  readonly rule: Rule;
  readonly numbers: Readonly<Record<string, number>>;
  readonly confidence: Confidence;
  readonly evidence: readonly Sighting[];
  readonly notes: readonly string[];
}
