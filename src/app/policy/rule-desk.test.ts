/** Whoever asks for a rule is answered: with what was done, with what went wrong, or that the worker is gone. */
import { expect, test } from 'vitest';
import type { PolicyRule } from '../../spec/run.ts';
import type { RuleOutcome } from './apply-rule.ts';
import { RuleDesk } from './rule-desk.ts';

const RULE: PolicyRule = { forbid: { kvCache: 'below-16-bit' }, because: 'x', by: 'y' };
const OUTCOME: RuleOutcome = {
  ...{ rule: 'forbid', because: 'x', by: 'y', launches: [], records: 0, prompts: 0, tokens: 0, partitions: [], unkept: [] },
};

test('the worker is told of a request, takes it once, and its outcome is the answer', async () => {
  const desk = new RuleDesk();
  const told: PolicyRule[] = [];
  desk.onAsk((rule) => told.push(rule));
  const asked = desk.ask(RULE);
  expect(told).toEqual([RULE]);
  const request = desk.take();
  expect(desk.take()).toBeUndefined();
  request?.answer(OUTCOME);
  expect(await asked).toBe(OUTCOME);
});

test('a listener that comes late is told at once, one that left is not told', () => {
  const desk = new RuleDesk();
  const told: string[] = [];
  desk.onAsk(() => told.push('left'))();
  void desk.ask(RULE);
  desk.onAsk(() => told.push('late'));
  expect(told).toEqual(['late']);
});

test('what goes wrong is thrown where it was asked for', async () => {
  const desk = new RuleDesk();
  const asked = desk.ask(RULE);
  desk.take()?.refuse(new Error('the disk is full'));
  await expect(asked).rejects.toThrow('the disk is full');
});

test('a worker that ends leaves nobody waiting, neither who has asked nor who asks then', async () => {
  const desk = new RuleDesk();
  const asked = desk.ask(RULE);
  desk.close();
  expect(await asked).toBeUndefined();
  expect(await desk.ask(RULE)).toBeUndefined();
  expect(desk.take()).toBeUndefined();
});

test('what the worker has taken is its to answer, also when it ends', async () => {
  const desk = new RuleDesk();
  const asked = desk.ask(RULE);
  const request = desk.take();
  desk.close();
  request?.answer(OUTCOME);
  expect(await asked).toBe(OUTCOME);
});
