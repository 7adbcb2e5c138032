import { describe, expect, it } from 'vitest';
import { readCorpus, verdictOf } from '../../../test/support/diagnose-log.ts';
import { compileSign } from '../sign.ts';
import { FAMILIES, RULES } from './all.ts';

const SIGNS = RULES.flatMap((rule) =>
  rule.signs.map((sign) => ({ code: rule.code, sign: typeof sign === 'string' ? { text: sign } : sign })),
);
/** Told by process and port: judge-look.test.ts. */
const LIVE = ['container-image-stalled', 'died-without-a-word', 'workers-gone', 'front-end-mute'];
/** Rules that need a server that works, or a clock, to be told. */
const BY_FIGURES = RULES.filter(({ signs }) => signs.length === 0);

describe('every rule', () => {
  it.each(
    RULES.filter(({ example, signs }) => example !== '' && signs.length > 0).map(
      (rule) => [`${rule.code}: ${rule.example.slice(0, 60)}`, rule] as const,
    ),
  )('knows its own example: %s', (_, rule) => {
    const ended =
      rule.onlyIfDead === true
        ? `${rule.example}\nSIGQUIT received. signum=None, frame=None. It usually means one child failed.\n`
        : rule.example;
    const silent = rule.state === 'hung';
    const verdict = verdictOf(`[2026-01-01 00:00:00] INFO: begin\n${ended}\n`, silent);
    expect(verdict.cause).toBe(rule.code);
  });

  it('has a meaning, a remedy and what it is mistaken for, in sentences', () => {
    for (const { code, meaning, mistakenFor, remedy, title } of RULES) {
      expect(meaning, code).toMatch(/^(?:[A-Z]|vLLM).*\.$/s);
      expect(mistakenFor.length, code).toBeGreaterThan(5);
      expect(title, code).not.toMatch(/\.$/);
      const { text } = remedy({ facts: { lines: 0, arguments: {}, isReady: false, retractions: 0, samples: [] }, numbers: {} });
      expect(text, code).toMatch(/[.)]$/);
    }
  });

  it('is written for the kind of a fault: no sign names a model, a path of a machine, an address or a number of one log', () => {
    const own =
      /qwen|llama|deepseek(?!.*api)|kimi|mistral|glm|gemma|minimax|\/home\/|\/usr\/|\/opt\/|\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b|\b\d{5,}\b|pid=\d/i;
    for (const { code, sign } of SIGNS) expect(`${code}: ${sign.text}`).not.toMatch(own);
  });

  it('looks for texts that stand in few lines: anchors of six letters at least', () => {
    for (const { code, sign } of SIGNS)
      expect(compileSign(sign).anchor.length, `${code}: ${sign.text}`).toBeGreaterThanOrEqual(sign.isWhole === true ? 6 : 5);
  });

  it('that is told by figures or by silence has a log of the corpus, or a test of its own', () => {
    const inCorpus = new Set(readCorpus().map(({ cause }) => cause));
    const tested = new Set(['long-request-blocks-queue', 'worker-stuck-no-progress', 'unknown', ...LIVE]);
    for (const { code } of BY_FIGURES) expect(inCorpus.has(code) || tested.has(code), code).toBe(true);
  });
});

it('knows every cause of the corpus', () => {
  const codes = new Set(RULES.map(({ code }) => code));
  for (const { cause } of readCorpus()) expect(codes).toContain(cause);
  expect(FAMILIES.flatMap(({ rules }) => rules)).toEqual(RULES);
});
