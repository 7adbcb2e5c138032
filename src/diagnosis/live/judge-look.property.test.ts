/** Laws of a judgement by looks: more progress is never worse, probes are nothing, idleness is no hang, time zones do not count. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { accountOf, readCorpus } from '../../../test/support/diagnose-log.ts';
import { BUSY, looksOf, REFUSED, type Sketch, STARTING, standing, WELL } from '../../../test/support/live-looks.ts';
import { hasWorked } from '../account-view.ts';
import { LogReader } from '../read-log.ts';
import { judgeLook, keepLooks } from './judge-look.ts';
import { type Health, type LiveState, type Look, logSigns } from './look.ts';

const LOGS = readCorpus().map(({ name, text }) => ({ name, text }));
const READY = '[2026-02-01 10:00:09] The server is fired up and ready to roll!\n';
const PROBE_LINES = [
  '[2026-02-01 10:00:20 TP0] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, \n',
  '[2026-02-01 10:00:30] INFO:     127.0.0.1:51234 - "GET /health HTTP/1.1" 200 OK\n',
  'INFO:     127.0.0.1:51234 - "GET /metrics HTTP/1.1" 200 OK\n',
  "[2026-02-01 10:00:50] Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.\n",
];

/** A history that only goes on: each step adds to the figures before it. */
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.record({
    seconds: fc.integer({ min: 1, max: 300 }),
    tokens: fc.constantFrom(0, 0, 0, 1, 500),
    mebibytes: fc.constantFrom(0, 0, 0, 1, 900),
    inFlight: fc.constantFrom(0, 1, 150),
    health: fc.constantFrom<Health>(WELL, WELL, BUSY, STARTING, REFUSED),
  }),
  { minLength: 1, maxLength: 30 },
);
interface Step {
  readonly seconds: number;
  readonly tokens: number;
  readonly mebibytes: number;
  readonly inFlight: number;
  readonly health: Health;
}

function historyOf(all: readonly Step[]): [number, Sketch][] {
  let [at, generated, mebibytes] = [0, 0, 0];
  return all.map((step) => {
    at += step.seconds;
    generated += step.tokens;
    mebibytes += step.mebibytes;
    const sketch = { generated, inFlight: step.inFlight, health: step.health, process: { residentBytes: mebibytes * 2 ** 20 } };
    return [at, sketch];
  });
}

const HUNG: Readonly<Record<LiveState, number>> = {
  ...{ ready: 0, serving: 0, degraded: 0, initializing: 0, stopped: 0, absent: 0, unresponsive: 1, hung: 2, crashed: 2 },
};

describe('judgeLook', () => {
  it.each([
    ['a start', '[2026-02-01 10:00:01 TP0] sglang is using nccl==2.27.5\n'],
    ['a server at work', READY],
  ])('%s: more progress at any moment never makes it more hung', (_, log) => {
    const account = accountOf(log);
    fc.assert(
      fc.property(steps, fc.nat(), fc.nat(600), (all, where, more) => {
        const at = where % all.length;
        const better = all.map((step, n) =>
          n === at ? { ...step, tokens: step.tokens + more, mebibytes: step.mebibytes + more } : step,
        );
        const [one, other] = [all, better].map((history) => judgeLook({ account, looks: looksOf(historyOf(history)) }));
        expect(HUNG[other?.state ?? 'hung']).toBeLessThanOrEqual(HUNG[one?.state ?? 'ready']);
        expect(other?.stillForMs).toBeLessThanOrEqual(one?.stillForMs ?? 0);
      }),
      { numRuns: 300 },
    );
  });

  it('lines of probes change nothing, wherever they stand', () => {
    const probes = fc.array(fc.constantFrom(...PROBE_LINES.slice(1, 3)), { maxLength: 8 });
    fc.assert(
      fc.property(steps, probes, fc.constantFrom('', READY), (all, lines, log) => {
        const without = accountOf(log);
        const account = accountOf(log + lines.join(''));
        const looks = looksOf(historyOf(all));
        const { facts: _, evidence: __, notes: ___, ...one } = judgeLook({ account: without, looks });
        const { facts: ____, evidence: _____, notes: ______, ...other } = judgeLook({ account, looks });
        if (log !== '') expect(other).toEqual(one);
        expect(other.state).toBe(one.state);
        expect(logSigns(account)).toEqual(logSigns(without));
      }),
    );
  });

  it('a dead server whose log holds only the probe’s own lines hangs when work waits, and is ready when nobody asks', () => {
    const reader = new LogReader();
    reader.feed(Buffer.from(READY));
    let [working, idle]: (readonly Look[])[] = [[], []];
    for (let at = 0; at <= 600; at += 10) {
      reader.feed(Buffer.from(PROBE_LINES.slice(0, 3).join('')));
      const signs = logSigns(reader.account());
      const look = (inFlight: number) =>
        ({ ...looksOf([[at, { health: WELL, inFlight, generated: 7, running: 0, waiting: 0 }]])[0], ...signs }) as Look;
      working = keepLooks(working ?? [], look(3));
      idle = keepLooks(idle ?? [], look(0));
    }
    const account = reader.account();
    expect(judgeLook({ account, looks: working ?? [] })).toMatchObject({ state: 'hung', cause: 'worker-stuck-no-progress' });
    expect(judgeLook({ account, looks: idle ?? [] })).toMatchObject({ state: 'ready', cause: 'none' });
  });

  it('an idle server is never hung, whatever its health says while its port is open', () => {
    fc.assert(
      fc.property(steps, fc.constantFrom('', READY), (all, log) => {
        const open = all.map((step) => ({ ...step, inFlight: 0, health: step.health === REFUSED ? WELL : step.health }));
        const looks = looksOf([[0, { health: WELL }], ...historyOf(open)]);
        expect(['ready', 'serving', 'unresponsive']).toContain(judgeLook({ account: accountOf(log), looks }).state);
      }),
    );
  });

  it('gives a verdict with finite figures and words for any log of the corpus at any history', () => {
    const presence = fc.constantFrom('running' as const, 'zombie' as const, 'gone' as const, 'unknown' as const);
    const exit = fc.option(fc.integer({ min: -15, max: 255 }), { nil: undefined });
    fc.assert(
      fc.property(fc.constantFrom(...LOGS), steps, presence, exit, ({ text }, all, how, exitStatus) => {
        const history = historyOf(all).map(([at, sketch], n) => {
          return [at, n === all.length - 1 ? { ...sketch, process: { presence: how, exitStatus } } : sketch] as const;
        });
        const { stillForMs, limitMs, signs, remedy } = judgeLook({ account: accountOf(text), looks: looksOf(history) });
        expect(stillForMs).toBeGreaterThanOrEqual(0);
        expect(Number.isFinite(limitMs)).toBe(true);
        expect(signs.length).toBeGreaterThan(0);
        expect(signs.join(' ')).not.toMatch(/NaN|undefined|Infinity/);
        expect(remedy.text).not.toBe('');
      }),
      { numRuns: 200 },
    );
  });
});

describe('a log replayed in time', () => {
  const loading = LOGS.find(({ name }) => name === '091-sglang-eight-ranks-loading-weights')?.text ?? '';

  /** A line of the log and a look each so many seconds; the port opens when the log says so. */
  function replay(text: string, every: number) {
    const reader = new LogReader();
    const states: LiveState[] = [];
    let looks: readonly Look[] = [];
    let at = 0;
    for (const line of text.split('\n')) {
      reader.feed(Buffer.from(`${line}\n`));
      const account = reader.account();
      const health = account.ready === undefined && !hasWorked(account) ? REFUSED : WELL;
      looks = keepLooks(looks, { ...(looksOf([[at, { health }]])[0] as Look), ...logSigns(account) });
      states.push(judgeLook({ account, looks }).state);
      at += every;
    }
    return { states, seconds: at };
  }

  it('a start of more than 1,200 s whose log goes on is never hung', () => {
    const lines = loading.split('\n').length;
    const { states, seconds } = replay(loading, Math.max(60, Math.ceil(1200 / lines)));
    expect(seconds).toBeGreaterThan(1200);
    expect(new Set(states)).toEqual(new Set(['initializing']));
  });

  it('a start whose log stands for an hour while it reads is never hung', () => {
    const account = accountOf(loading.split('\n').slice(0, 8).join('\n'));
    for (let end = 15; end <= 3600; end += 15) {
      const history = standing(0, end, {}, 15).map(
        ([at]) => [at, { health: REFUSED, process: { readBytes: at * 2 ** 30 } }] as const,
      );
      expect(judgeLook({ account, looks: looksOf(history) }).state).toBe('initializing');
    }
  });

  it('healthy logs never hang or crash on the way, at a line in 20 s', () => {
    for (const { name, text, cause } of readCorpus()) {
      if (cause !== 'none') continue;
      const { states } = replay(text.split('\n').slice(0, 300).join('\n'), 20);
      const wrong = states.filter((state) => !['initializing', 'ready', 'serving'].includes(state));
      expect(wrong, name).toEqual([]);
    }
  });
});

describe('keepLooks', () => {
  it('keeps the first, the last ones all, and never more than about a thousand', () => {
    let looks: readonly Look[] = [];
    for (let at = 0; at < 20_000; at++) looks = keepLooks(looks, looksOf([[at, {}]])[0] as Look);
    expect(looks.length).toBeLessThanOrEqual(1024);
    expect(looks[0]?.atMs).toBe(0);
    expect(looks.slice(-500).map(({ atMs }) => atMs / 1000)).toEqual(Array.from({ length: 500 }, (_, n) => 19_500 + n));
  });

  it('forgets no hang: what has stood since the first look stands still', () => {
    let looks: readonly Look[] = [];
    const sketch: Sketch = { health: WELL, generated: 5, inFlight: 3 };
    for (let at = 0; at < 20_000; at += 2) looks = keepLooks(looks, looksOf([[at, sketch]])[0] as Look);
    expect(judgeLook({ account: accountOf(READY), looks })).toMatchObject({ state: 'hung', stillForMs: 19_998_000 });
  });
});
