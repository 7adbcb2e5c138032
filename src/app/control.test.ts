/** The worker's side of `control/`: whole requests only, the oldest first, and whatever cannot be a rule is answered so. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { nodeHost } from '../host/node-host.ts';
import type { PolicyRule } from '../spec/run.ts';
import { askWorker, watchControl } from './control.ts';
import type { RuleOutcome } from './policy/apply-rule.ts';

const { clock } = nodeHost();
const RULE = { forbid: { 'kv-cache': 'below-16-bit' }, because: 'x', by: 'y' };

function outcomeOf({ because, by }: PolicyRule): RuleOutcome {
  return { rule: 'forbid', because, by, launches: [], records: 0, prompts: 0, tokens: 0, partitions: [], unkept: [] };
}

function makeFolder(requests: Readonly<Record<string, string>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-control-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  if (Object.keys(requests).length > 0) mkdirSync(join(folder, 'control'));
  for (const [name, text] of Object.entries(requests)) writeFileSync(join(folder, 'control', name), text);
  return folder;
}

/** A worker that ends once this many requests are answered. */
async function work(folder: string, answers: number, onRule: (rule: PolicyRule) => RuleOutcome): Promise<void> {
  const ending = new AbortController();
  let given = 0;
  let called = 0;
  const watching = watchControl({
    ...{
      folder,
      signal: ending.signal,
      onRule: (rule) => {
        called += 1;
        return Promise.resolve().then(() => onRule(rule));
      },
    },
    clock: {
      sleep: (ms, signal) => {
        given = existsSync(join(folder, 'control'))
          ? readdirSync(join(folder, 'control')).filter((name) => name.endsWith('.done.json')).length
          : 0;
        if (Math.max(given, called) >= answers) ending.abort();
        return clock.sleep(Math.min(ms, 20), signal);
      },
    },
  });
  await watching;
}

const answerIn = (folder: string, name: string) =>
  JSON.parse(readFileSync(join(folder, 'control', name), 'utf8')) as { ok: boolean; message?: string };

test('requests are carried out in their order, once each, and what is no request is left alone', async () => {
  const folder = makeFolder({
    'policy-10-1.json': JSON.stringify({ ...RULE, by: 'third' }),
    'policy-9.json': JSON.stringify({ ...RULE, by: 'second' }),
    'policy-2.json': JSON.stringify({ ...RULE, by: 'first' }),
    'policy-1.json': JSON.stringify({ ...RULE, by: 'answered before' }),
    'policy-1.done.json': '{}',
    'policy-3.json.new': 'half of a requ',
    'notes.txt': 'x',
  });
  const done: string[] = [];
  await work(folder, 4, (rule) => {
    done.push(rule.by);
    return outcomeOf(rule);
  });
  expect(done).toEqual(['first', 'second', 'third']);
  expect(answerIn(folder, 'policy-10-1.done.json')).toMatchObject({ ok: true, outcome: { by: 'third' } });
});

test.each([
  ['no JSON', '{'],
  ['a list', '[]'],
  ['nothing', 'null'],
  ['no rule', '{"forbid":{"kv-cache":"fp8"},"because":"x","by":"y"}'],
  ['a rule without a reason', '{"forbid":{"kv-cache":"below-16-bit"}}'],
  ['far too much', JSON.stringify({ ...RULE, because: 'x'.repeat(100_000) })],
])('%s is answered as that, and nothing is done', async (_, text) => {
  const folder = makeFolder({ 'policy-1.json': text });
  await work(folder, 1, () => {
    throw new Error('it was taken for a rule');
  });
  const answer = answerIn(folder, 'policy-1.done.json');
  expect(answer.ok).toBe(false);
  expect(answer.message).not.toContain('taken for a rule');
});

test('whoever asks has the answer, or the error that the worker met, and leaves nothing behind', async () => {
  const folder = makeFolder();
  const asking = (number: string) =>
    askWorker(RULE, {
      ...{ folder, number, clock, signal: new AbortController().signal },
      ...{ limitMs: 60_000, isWorkerGone: () => false },
    });
  const [first] = await Promise.all([asking('1'), work(folder, 1, outcomeOf)]);
  expect(first).toEqual({ ok: true, outcome: outcomeOf({ because: 'x', by: 'y' }) });
  const refusing = () => {
    throw new Error('no space left');
  };
  const [second] = await Promise.all([asking('2'), work(folder, 1, refusing)]);
  expect(second).toEqual({ ok: false, message: 'no space left', remedy: '' });
  expect(readdirSync(join(folder, 'control'))).toEqual([]);
});

test('a worker that says nothing is told of, one that has ended leaves the work to the asker, and the request is taken back', async () => {
  const folder = makeFolder();
  const ask = (limitMs: number, isGone: boolean) =>
    askWorker(RULE, {
      ...{ folder, number: '1', clock, signal: new AbortController().signal },
      ...{ limitMs, isWorkerGone: () => isGone },
    });
  await expect(ask(1, false)).rejects.toMatchObject({ code: 'control.unanswered' });
  expect(await ask(60_000, true)).toBeUndefined();
  expect(readdirSync(join(folder, 'control'))).toEqual([]);
});
