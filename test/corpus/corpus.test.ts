/**
 * Real logs, with the verdict expected of each; the same logs in other clothes; with their evidence taken away; and cut short.
 * What is missed is named in docs/diagnosis.md.
 */
import { describe, expect, it } from 'vitest';
import { type Case, isRight, readCorpus, verdictOf } from '../support/diagnose-log.ts';
import { MUTATIONS } from '../support/mutate-log.ts';

const CORPUS = readCorpus();
/** The log shows only the symptom; its cause stood in the report's title. Guessing it would be wrong elsewhere. */
const MISSES = new Set(['021-vllm-mqllmengine-dead']);
const RIGHT = CORPUS.filter(({ name }) => !MISSES.has(name));

describe('corpus logs', () => {
  it.each(CORPUS.map((one) => [one.name, one] as const))('%s', (name, one) => {
    const verdict = verdictOf(one.text, one.isSilent);
    const said = { state: verdict.state, cause: verdict.cause };
    if (MISSES.has(name)) expect(said).toEqual({ state: one.state, cause: 'unknown' });
    else expect(isRight(one, verdict), JSON.stringify({ said, expected: one.cause, evidence: verdict.evidence })).toBe(true);
  });

  it('are right in 95 of a hundred at least, and their evidence stands in them', () => {
    expect(RIGHT.length / CORPUS.length).toBeGreaterThanOrEqual(0.95);
    for (const one of RIGHT) {
      const lines = one.text.split('\n');
      for (const { line, text } of verdictOf(one.text, one.isSilent).evidence)
        expect(lines[line - 1], one.name).toContain(text.slice(0, 60));
    }
  });
});

describe.each(Object.entries(MUTATIONS))('the same logs, %s', (_, mutate) => {
  it('keep their verdicts', () => {
    const wrong = RIGHT.flatMap((one) => {
      const verdict = verdictOf(mutate(one.text), one.isSilent);
      return isRight(one, verdict) ? [] : [`${one.name}: ${verdict.state} ${verdict.cause}, not ${one.state} ${one.cause}`];
    });
    expect(wrong).toEqual([]);
  });
});

describe('the same logs without the lines that were the evidence', () => {
  const SICK = RIGHT.filter(({ state, cause }) => cause !== 'none' && (state === 'crashed' || state === 'hung'));

  it.each(SICK.map((one) => [one.name, one] as const))('%s: another cause that is true, or unknown, or none', (_, one) => {
    const verdict = verdictOf(withoutEvidence(one), one.isSilent);
    // What is left may show how the server ended, or a second line that says the same; never another fault.
    expect([one.cause, 'unknown', 'none', ...(TRUE_BESIDE[one.name] ?? [])]).toContain(verdict.cause);
  });
});

/** What else the rest of a log truly shows. */
const TRUE_BESIDE: Readonly<Record<string, readonly string[]>> = {
  '004-sglang-watchdog-jit-first-request': ['flashinfer-jit-compile'],
};

function withoutEvidence({ text, evidence, isSilent }: Case): string {
  const said = new Set(verdictOf(text, isSilent).evidence.map(({ line }) => line));
  const lines = text.split('\n');
  return lines.filter((line, at) => !said.has(at + 1) && !evidence.some((part) => line.includes(part))).join('\n');
}

describe('logs cut at every line', () => {
  const order = ['initializing', 'ready', 'serving', 'degraded', 'hung', 'crashed'];

  it('never say that a healthy server crashed or hangs', () => {
    for (const one of RIGHT.filter(({ cause }) => cause === 'none')) {
      for (const cut of cuts(one.text)) expect(['initializing', 'ready', 'serving'], one.name).toContain(verdictOf(cut).state);
    }
  });

  it('do not flip: a crash stays a crash, a state once left does not come back', () => {
    for (const one of RIGHT) {
      const states = cuts(one.text).map((cut) => verdictOf(cut).state);
      const changes = states.filter((state, at) => state !== states[at - 1]);
      expect(new Set(changes).size, `${one.name}: ${changes.join(' ')}`).toBe(changes.length);
      if (changes.includes('crashed')) expect(changes.at(-1), one.name).toBe('crashed');
    }
    expect(order).toContain('hung');
  });
});

/** The log as it was after each of its lines, and in the middle of each. */
function cuts(text: string): string[] {
  const ends = [...text.matchAll(/\n/g)].map(({ index }) => index + 1);
  return ends.flatMap((end, at) => [text.slice(0, Math.floor((end + (ends[at - 1] ?? 0)) / 2)), text.slice(0, end)]);
}
