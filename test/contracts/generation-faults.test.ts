/**
 * Generation against an engine that misbehaves: whatever it does, the records are exactly what it gave, a poison prompt
 * costs itself alone, and a sick server costs nobody.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Clock } from '../../src/host/host.ts';
import { nodeHost } from '../../src/host/node-host.ts';
import { proves } from '../proves.ts';
import { numbered, openWork, unwitnessedTurns } from '../support/generation-bench.ts';
import { answeredLines, until } from '../support/lookalike-bench.ts';
import { spawnProgram } from '../support/spawn-program.ts';

const QUICK = { latency: { kind: 'uniform', minMs: 5, maxMs: 30 } };

proves('prompt:server-death-blames-nobody', 'a burst of 5xx for everyone sets nobody aside', async () => {
  const faults = [{ when: { untilMs: 6_000 }, do: 'status', status: 500 }];
  const work = await openWork({ prompts: numbered(40), scenario: { ...QUICK, faults } });
  const { report, error } = await work.run();
  expect(error).toBeUndefined();
  const { records, asides, outcomes, leased } = await work.left();
  expect([records.length, asides.length, leased]).toEqual([40, 0, 0]);
  expect(outcomes['failed']).toBeGreaterThan(8);
  // Two tries each of those under way, then one trial question at a time: trouble makes no storm.
  expect(outcomes['failed']).toBeLessThanOrEqual(2 * 2 * 8);
  expect(unwitnessedTurns(records, work.bench?.journal ?? '')).toEqual([]);
  expect(report?.session.records).toBe(40);
});

for (const status of [400, 500]) {
  proves(
    'prompt:poison-is-set-aside',
    `a prompt that is always answered ${status} is set aside, and the rest is done`,
    async () => {
      const faults = [{ when: { contains: 'poison' }, do: 'status', status, body: { error: { message: 'bad prompt' } } }];
      const prompts = [...numbered(12), 'the poison', ...numbered(12, 'more')];
      const work = await openWork({ prompts, scenario: { ...QUICK, faults } });
      expect((await work.run()).error).toBeUndefined();
      const { records, asides } = await work.left();
      expect(records.length).toBe(24);
      expect(asides.map(({ because }) => because)).toEqual([expect.stringContaining('bad prompt')]);
      expect(unwitnessedTurns(records, work.bench?.journal ?? '')).toEqual([]);
    },
  );
}

proves(
  'prompt:poison-is-set-aside',
  'a prompt that kills the server each time is set aside in the end, and nobody else',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'aerie-killer-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const [scenario, journal] = [join(folder, 'scenario.json'), join(folder, 'journal.jsonl')];
    const faults = [{ when: { contains: 'poison' }, do: 'die', ms: 50 }];
    writeFileSync(
      scenario,
      JSON.stringify({ latency: { kind: 'fixed', ms: 100 }, answerTokens: { kind: 'fixed', tokens: 40 }, faults }),
    );
    const start = (port: number) =>
      spawnProgram({ program: 'lookalike-engine.js', port, args: ['--scenario', scenario, '--journal', journal] });
    let engine = await start(0);
    const { port } = engine;
    let isOver = false;
    let lives = 1;
    const keeping = (async () => {
      for (;;) {
        await engine.exited;
        if (isOver) return;
        engine = await start(port);
        lives += 1;
        if (isOver) await engine.stop();
      }
    })();
    onTestFinished(async () => {
      isOver = true;
      await engine.stop();
    });
    const prompts = ['first poison', ...numbered(30), 'last poison'];
    const work = await openWork({ port, prompts, settings: { 'in-flight': 4 } });
    const { error } = await work.run();
    isOver = true;
    await engine.stop();
    await keeping;
    expect(error).toBeUndefined();
    const { records, asides } = await work.left();
    expect(asides.map(({ because }) => because)).toEqual([
      expect.stringContaining('the server was lost'),
      expect.stringContaining('the server was lost'),
    ]);
    expect(records.length).toBe(30);
    expect(unwitnessedTurns(records, journal)).toEqual([]);
    expect(lives).toBeLessThanOrEqual(20);
  },
);

proves(
  'reply:bad-reply-is-no-record',
  'wrong counts, bad ids, garbage, an empty or a cut answer are asked again and never kept',
  async () => {
    const wrongs = [
      { do: 'garbage' },
      { do: 'wrong-count' },
      { do: 'bad-ids', id: -1 },
      { do: 'bad-ids', id: 2 ** 31 },
      { do: 'empty' },
      { do: 'empty', form: 'no-choices' },
      { do: 'cut' },
      { do: 'reset' },
    ];
    const faults = wrongs.map((wrong, at) => ({ when: { request: 2 + 3 * at }, ...wrong }));
    const work = await openWork({ prompts: numbered(24), scenario: { ...QUICK, faults } });
    expect((await work.run()).error).toBeUndefined();
    const { records, asides, outcomes } = await work.left();
    expect([records.length, asides.length]).toEqual([24, 0]);
    expect(outcomes).toMatchObject({ malformed: 6, completed: 24 });
    expect(outcomes['lost']).toBeGreaterThanOrEqual(2);
    expect(unwitnessedTurns(records, work.bench?.journal ?? '')).toEqual([]);
  },
);

test('a 429 that says when is waited for', async () => {
  const faults = [{ when: { request: 3 }, do: 'status', status: 429, retryAfterSeconds: 2 }];
  const work = await openWork({ prompts: numbered(10), scenario: { ...QUICK, faults } });
  const { report } = await work.run();
  expect(report?.session.elapsedMs).toBeGreaterThanOrEqual(2_000);
  const { records, outcomes } = await work.left();
  expect(records.length).toBe(10);
  expect(outcomes).toEqual({ completed: 10, overloaded: 1 });
});

test('requests that hang end at their deadline and are asked again', async () => {
  const faults = [{ when: { fromRequest: 3, toRequest: 5 }, do: 'hang' }];
  const work = await openWork({ prompts: numbered(20), scenario: { ...QUICK, faults }, settings: { 'attempt-timeout': '1s' } });
  expect((await work.run()).error).toBeUndefined();
  const { records, asides, outcomes } = await work.left();
  expect([records.length, asides.length, outcomes['lost']]).toEqual([20, 0, 3]);
});

proves(
  'prompt:server-death-blames-nobody',
  'a server whose health lies while it hangs ends the run, resumable, and blames no prompt',
  async () => {
    const faults = [{ when: { fromRequest: 11 }, do: 'health-lies' }];
    const settings = { 'attempt-timeout': '1s', patience: '4s' };
    const work = await openWork({ prompts: numbered(30), scenario: { ...QUICK, faults }, settings });
    const { error } = await work.run();
    expect(error).toMatchObject({ code: 'server.gave-up', exitCode: 5 });
    const { records, asides } = await work.left();
    expect([records.length, asides.length]).toEqual([10, 0]);
    await work.bench?.pool.request({ method: 'DELETE', path: '/_lookalike/fault' }).then(({ body }) => body.dump());
    expect((await work.run()).error).toBeUndefined();
    expect((await work.left()).records.length).toBe(30);
  },
);

for (const status of [500, 503]) {
  test(`a server that answers ${status} for ever is given up after the run's patience`, async () => {
    const work = await openWork({
      prompts: numbered(30),
      scenario: { faults: [{ do: 'status', status }] },
      settings: { patience: '3s' },
    });
    const { error } = await work.run();
    expect(error).toMatchObject({ code: 'server.gave-up', exitCode: 5 });
    expect((await work.left()).asides).toEqual([]);
  });
}

test('404 for all ends the run at once: server.rejects, exit code 4', async () => {
  const work = await openWork({ prompts: numbered(30), scenario: { faults: [{ do: 'status', status: 404 }] } });
  expect((await work.run()).error).toMatchObject({ code: 'server.rejects', exitCode: 4 });
  expect((await work.left()).asides).toEqual([]);
});

test('400 for all ends the run without blaming a prompt', async () => {
  const work = await openWork({ prompts: numbered(30), scenario: { faults: [{ do: 'status', status: 400 }] } });
  expect((await work.run()).error).toMatchObject({ code: 'server.rejects', exitCode: 4 });
  expect((await work.left()).asides).toEqual([]);
});

test('a server that is not there is waited for, and no longer than the patience', async () => {
  const port = await freePort();
  const work = await openWork({ port, prompts: ['one'], settings: { patience: '1s' } });
  expect((await work.run()).error).toMatchObject({ code: 'server.unreachable', exitCode: 4 });
});

test('the number asked for is in flight, and with 256 the gate opens by steps', async () => {
  // Long enough that all of a step are in flight together; the steps wait for the test and not for the time.
  const scenario = { latency: { kind: 'fixed', ms: 5_000 } };
  const steps = holdSleeps(100);
  const work = await openWork({ prompts: numbered(300), scenario, settings: { 'in-flight': 256 }, clock: steps.clock });
  const running = work.run();
  const inFlight = (count: number) => until(async () => ((await work.bench?.stats())?.inFlight ?? 0) >= count);
  await inFlight(32);
  expect((await work.bench?.stats())?.maxInFlight).toBe(32);
  await steps.next();
  await inFlight(64);
  expect((await work.bench?.stats())?.maxInFlight).toBe(64);
  steps.release();
  expect((await running).report?.session.mostInFlight).toBe(256);
  expect((await work.bench?.stats())?.maxInFlight).toBe(256);
  expect((await work.left()).records.length).toBe(300);
});

test('a drain in the middle finishes what is in flight, and the next start does the rest without asking a turn twice', async () => {
  const prompts = Array.from({ length: 20 }, (_, at) => [`first ${at}`, `second ${at}`, `third ${at}`]);
  const work = await openWork({ prompts, scenario: { latency: { kind: 'fixed', ms: 100 } } });
  const running = work.run();
  await until(async () => ((await work.bench?.stats())?.answered ?? 0) >= 20);
  work.stop('SIGINT');
  expect((await running).error).toMatchObject({ code: 'run.interrupted', exitCode: 130 });
  expect((await work.left()).records.length).toBeLessThan(20);
  expect((await work.run()).error).toBeUndefined();
  const { records, asides } = await work.left();
  expect([records.length, asides.length]).toEqual([20, 0]);
  expect(unwitnessedTurns(records, work.bench?.journal ?? '')).toEqual([]);
  expect(await work.bench?.stats()).toMatchObject({ aborted: 0, answered: 60 });
});

test('giving up says truly what was in flight, and is quick', async () => {
  const work = await openWork({ prompts: numbered(20), scenario: { latency: { kind: 'fixed', ms: 60_000 } } });
  const running = work.run();
  await until(async () => (await work.bench?.stats())?.inFlight === 8);
  const startedMs = performance.now();
  work.stop('SIGTERM');
  const { error } = await running;
  expect(performance.now() - startedMs).toBeLessThan(5_000);
  expect(error).toMatchObject({ code: 'run.terminated', detail: { facts: { givenUpRequests: 8 } } });
  expect((await work.left()).asides).toEqual([]);
});

proves('budget:stops-admitting', 'a budget stops admission, and what was spent is what the engine gave', async () => {
  const work = await openWork({ prompts: numbered(200), scenario: QUICK, budget: 2_000, maxTokens: 100 });
  expect((await work.run()).error).toBeUndefined();
  const { records, spentTokens, leased, waiting } = await work.left();
  const given = answeredLines(work.bench as NonNullable<typeof work.bench>).reduce(
    (sum, { outputIds }) => sum + (outputIds?.count ?? 0),
    0,
  );
  expect(spentTokens).toBe(given);
  expect(spentTokens).toBeGreaterThanOrEqual(2_000);
  expect(spentTokens).toBeLessThanOrEqual(2_000 + 100);
  expect([leased, waiting]).toEqual([0, 200 - records.length]);
  expect(work.events.filter(({ kind }) => kind === 'partition.budget-reached').length).toBe(1);
  expect(unwitnessedTurns(records, work.bench?.journal ?? '')).toEqual([]);
});

test('one request at a time: a budget that waits for an answer never holds the slot that the answer needs', async () => {
  const faults = [{ when: { request: 2 }, do: 'status', status: 503 }];
  const work = await openWork({
    prompts: numbered(5),
    scenario: { ...QUICK, faults },
    budget: 60,
    maxTokens: 50,
    settings: { 'in-flight': 1 },
  });
  expect((await work.run()).error).toBeUndefined();
  expect((await work.left()).records.length).toBe(2);
});

/** The real clock, but for sleeps of one length: those end when the test says so. */
function holdSleeps(heldMs: number) {
  const real = nodeHost().clock;
  const held: (() => void)[] = [];
  let isReleased = false;
  const clock: Clock = {
    now: () => real.now(),
    elapsed: () => real.elapsed(),
    sleep: (ms, signal) => (ms !== heldMs || isReleased ? real.sleep(ms, signal) : new Promise((resolve) => held.push(resolve))),
  };
  return {
    clock,
    async next(): Promise<void> {
      await until(() => held.length > 0);
      held.shift()?.();
    },
    release(): void {
      isReleased = true;
      for (const end of held.splice(0)) end();
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === 'object' && address !== null ? address.port : 0;
}
