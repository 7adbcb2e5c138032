/** What one look decides: states, what counts as activity, and the four things it could be. Each row is a server as a probe meets it. */
import { describe, expect, it } from 'vitest';
import { accountOf } from '../../../test/support/diagnose-log.ts';
import type { EngineCounters } from '../../engine/counters.ts';
import type { Health, ProcessSigns } from '../live/look.ts';
import type { HypothesisName, ProbeEvidence, Reading } from './evidence.ts';
import { judgeProbe } from './judge-probe.ts';

const AT = Date.UTC(2026, 1, 1, 10, 0, 0);
const MINUTE = 60_000;
const LOADING = [
  '[2026-02-01 10:00:00 TP0] Load weight begin. avail mem=94.14 GB',
  'Loading safetensors checkpoint shards:  45% Completed | 29/64 [00:03<00:04, 8.27it/s]',
  '',
].join('\n');
const READY = [
  '[2026-02-01 10:00:00 TP0] max_total_num_tokens=159277, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, available_gpu_mem=5.47 GB',
  '[2026-02-01 10:00:09] The server is fired up and ready to roll!',
  '',
].join('\n');
const DECODE =
  '[2026-02-01 10:01:00 TP0] Decode batch, #running-req: 34, #token: 90000, token usage: 0.56, gen throughput (token/s): 600.00, #queue-req: 116, \n';
const PROBED = [
  '[2026-02-01 10:30:00] INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 200 OK',
  '[2026-02-01 10:30:00 TP0] Prefill batch, #new-seq: 1, #new-token: 1, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, ',
  '[2026-02-01 10:30:10] INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 200 OK',
  '',
].join('\n');

const OK: Health = { kind: 'http', status: 200, afterMs: 1_010 };
const BUSY: Health = { kind: 'http', status: 503, afterMs: 20_040 };
const LATE: Health = { kind: 'timeout', afterMs: 21_500 };
const CLOSED: Health = { kind: 'refused', afterMs: 2 };

interface Sketch {
  readonly log?: string;
  /** Minutes from the log's first line to the probe. */
  readonly minutes?: number;
  readonly health?: Health;
  readonly process?: Partial<ProcessSigns> | undefined;
  /** Laid over the process in the second reading. */
  readonly later?: Partial<ProcessSigns>;
  readonly counters?: readonly [EngineCounters, EngineCounters];
  readonly more?: Partial<ProbeEvidence>;
}

const PROCESS: ProcessSigns = {
  ...{ presence: 'running', exitStatus: undefined, residentBytes: 2 ** 33, readBytes: 2 ** 34, gpuUsedMiB: 600_000 },
  ...{ compilers: 0, children: 9 },
};

function counted(generatedTokens: number, running: number, waiting = 0, promptTokens = 0): EngineCounters {
  return { generatedTokens, promptTokens, running, waiting };
}

function evidenceOf({ log = '', minutes = 1, health, process = {}, later = {}, counters, more = {} }: Sketch): ProbeEvidence {
  const account = accountOf(log);
  const now = AT + minutes * MINUTE;
  const reading = (nth: 0 | 1, over: Partial<ProcessSigns>): Reading => ({
    atMs: 1_000 + nth * 3_000,
    account,
    process: more.process === undefined && Object.hasOwn(more, 'process') ? undefined : { ...PROCESS, ...process, ...over },
    counters: counters?.[nth],
  });
  const quietMs = account.lastAt === undefined ? minutes * MINUTE : Math.max(0, now - account.lastAt);
  return {
    engine: 'sglang',
    readings: [reading(0, {}), reading(1, later)],
    health,
    ...{ isAccountTold: false, schedulerSilentMs: 0 },
    log: log === '' ? undefined : { path: '/s.log', bytes: log.length, read: log.length, quietMs },
    logNow: now,
    process: { pid: 41, command: 'python -m sglang.launch_server', ageMs: minutes * MINUTE, uninterruptible: [], container: '' },
    ...{ kernel: [], groupOomKills: 0, orphans: [], portHeldBy: '', ownChecks: 1, isAskedToEnd: false },
    ...more,
  };
}

function judged(sketch: Sketch) {
  const { verdict, activity, hypotheses } = judgeProbe(evidenceOf(sketch));
  const of = (wanted: HypothesisName) => hypotheses.find(({ name }) => name === wanted) ?? { for: [], against: [] };
  return {
    ...{
      state: verdict.state,
      cause: verdict.cause,
      activity: activity.kind,
      says: activity.says.join('; '),
      notes: verdict.notes.join('; '),
    },
    signs: verdict.signs.join('; '),
    ...{ loading: of('loading'), hung: of('hung'), crashed: of('crashed'), busy: of('busy') },
  };
}

describe('a start', () => {
  it('that reads is slow, after a quarter of an hour too; a closed port speaks for it', () => {
    const found = judged({ log: LOADING, minutes: 15, health: CLOSED, later: { readBytes: 2 ** 34 + 2 ** 30 } });
    expect(found).toMatchObject({ state: 'initializing', cause: 'none', activity: 'starting' });
    const said = found.loading.for.join('; ');
    for (const word of [
      'line 1: weight-loading began',
      'it is at 29 of 64',
      'what it has read grew by 1 GiB in 3 s',
      'a start has no fixed time',
      'a closed port is usual',
    ])
      expect(said).toContain(word);
    expect(found.hung).toMatchObject({ for: [], against: ['what it has read grew by 1 GiB in 3 s'] });
    expect(found.busy.for).toEqual([]);
  });

  it('of which nothing has moved for longer than its phase may stand is hung, by the times of its log', () => {
    const found = judged({ log: LOADING, minutes: 15, health: CLOSED });
    expect(found).toMatchObject({ state: 'hung', activity: 'none' });
    expect(found.hung.for).toContain('nothing has moved for 15 min; 8 min may pass');
    expect(found.loading.against).toContain('nothing has moved for 15 min; 8 min may pass');
    expect(judged({ log: LOADING, minutes: 5, health: CLOSED }).state).toBe('initializing');
  });

  it('whose compilers work is not hung', () => {
    expect(judged({ log: LOADING, minutes: 30, health: CLOSED, process: { compilers: 4 } })).toMatchObject({
      state: 'initializing',
    });
  });
});

describe('who answers on a port and shows nothing else', () => {
  const nobody = { process: undefined };
  const at = (status: number): Health => ({ kind: 'http', status, afterMs: 3 });

  it('is no engine by sending elsewhere, asking who is there or knowing no such path', () => {
    for (const status of [302, 401, 404]) expect(judged({ health: at(status), more: nobody }).state).toBe('absent');
  });

  it('is one by its 200, by its own account, by its log', () => {
    expect(judged({ health: OK, more: nobody }).state).toBe('ready');
    expect(judged({ health: at(404), more: { ...nobody, isAccountTold: true } }).state).toBe('ready');
    expect(judged({ health: at(404), log: READY, more: nobody }).state).toBe('ready');
  });
});

describe('a scheduler that tells nothing behind a front end that does', () => {
  const mute = { schedulerSilentMs: 15_000 };

  it('is unresponsive, whatever its health says by itself', () => {
    const found = judged({ log: READY, minutes: 30, health: OK, more: mute });
    expect(found).toMatchObject({ state: 'unresponsive', cause: 'worker-stuck-no-progress' });
    expect(found.hung.for.join()).toContain('(/server_info) had no answer in 15 s');
  });

  it('is busy where it works, or where health has waited for the same step', () => {
    expect(judged({ log: READY + DECODE, minutes: 1, health: OK, more: mute }).state).toBe('serving');
    expect(judged({ log: READY, minutes: 30, health: { ...OK, afterMs: 18_000 }, more: mute }).state).toBe('ready');
  });
});

describe('a server that has been ready', () => {
  it('is well at rest: 200 with an empty body, and what probes cause is no activity', () => {
    const found = judged({ log: READY + PROBED, minutes: 31, health: OK, counters: [counted(10, 0), counted(11, 0, 0, 1)] });
    expect(found).toMatchObject({ state: 'ready', cause: 'none', activity: 'probes' });
    expect(found.says).toContain('the counters moved by this probe’s own health check alone');
    expect(found.says).toContain('lines of the log are of probes, and no activity');
    expect(found.busy.for).toEqual(['health: 200; an empty body is its usual answer']);
    expect(found.busy.against).toContain('all that moves is caused by probes');
    expect(found.hung.for).toEqual([]);
  });

  it('is at work although health waits for its step: a pending health alone makes nobody unresponsive', () => {
    const moving = judged({
      log: READY + DECODE,
      minutes: 8,
      health: LATE,
      counters: [counted(100, 34, 116), counted(900, 34, 116)],
    });
    expect(moving).toMatchObject({ state: 'serving', cause: 'none', activity: 'working' });
    expect(moving.busy.for).toContain('800 tokens in 3 s');
    expect(moving.busy.for.join('; ')).toContain('health: no answer in 22 s: it is answered after the running step');
    expect(moving.hung.against.join('; ')).toContain('a health check that waits proves nothing alone');
    // By its log alone: the last line of work is seconds old.
    const logged = judged({ log: READY + DECODE, minutes: 1.2, health: BUSY });
    expect(logged).toMatchObject({ state: 'serving', activity: 'working' });
    expect(logged.busy.for.join('; ')).toContain('line 3 of its log is work, 12 s ago');
    // And where nothing else is known at all.
    const blind = judged({ health: LATE, more: { process: undefined, engine: undefined } });
    expect(blind.state).not.toBe('unresponsive');
  });

  it('hangs where tokens have stood for longer than its watchdog while requests wait', () => {
    const found = judged({
      log: READY + DECODE,
      minutes: 20,
      health: OK,
      counters: [counted(100, 34, 116), counted(100, 34, 116)],
    });
    expect(found).toMatchObject({ state: 'hung', cause: 'worker-stuck-no-progress' });
    expect(found.hung.for).toContain('no token in 3 s while 34 run and 116 are queued');
    expect(found.busy.against).toContain('no token in 3 s');
    // For a few minutes it may.
    expect(judged({ log: READY + DECODE, minutes: 5, health: OK, counters: [counted(100, 34), counted(100, 34)] }).state).toBe(
      'serving',
    );
  });

  it('hangs where nobody computes behind a health of 200', () => {
    const found = judged({ log: READY, minutes: 3, health: OK, process: { children: 0 } });
    expect(found).toMatchObject({ state: 'hung', cause: 'workers-gone' });
    expect(found.hung.for[0]).toContain('no scheduler any more');
    // An engine that computes in its own process has no children.
    expect(judged({ log: READY, minutes: 3, health: OK, process: { children: 0 }, more: { engine: 'vllm' } }).state).toBe(
      'ready',
    );
  });

  it('whose port is closed while its process lives is unresponsive', () => {
    expect(judged({ log: READY, minutes: 3, health: CLOSED })).toMatchObject({ state: 'unresponsive', cause: 'front-end-mute' });
  });
});

describe('an end', () => {
  const gone = { presence: 'gone', exitStatus: 137, children: 0 } as const;

  it('without a word is told by the kernel, by the limit of its group, or by the status alone', () => {
    const killed = { kind: 'oom', text: 'Out of memory: Killed process 41 (python)', isOurs: true } as const;
    const byKernel = judged({ log: READY, health: CLOSED, process: gone, more: { kernel: [killed] } });
    expect(byKernel).toMatchObject({ state: 'crashed', cause: 'host-ram-oom-kill' });
    expect(byKernel.signs).toContain('Out of memory: Killed process 41');
    expect(byKernel.crashed.for).toContain('the kernel: Out of memory: Killed process 41 (python)');
    expect(judged({ log: READY, health: CLOSED, process: gone, more: { groupOomKills: 2 } })).toMatchObject({
      cause: 'host-ram-oom-kill',
    });
    const plain = judged({ log: READY, health: CLOSED, process: gone });
    expect(plain).toMatchObject({ state: 'crashed', cause: 'died-without-a-word' });
    expect(plain.crashed.for[0]).toContain('exit status 137 (SIGKILL');
    // Somebody else’s end is not its own.
    const other = { ...killed, isOurs: false };
    expect(judged({ log: READY, health: CLOSED, process: gone, more: { kernel: [other] } }).cause).toBe('died-without-a-word');
  });

  it('that someone asked for is no crash', () => {
    const log = `${READY}[2026-02-01 10:02:00] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n`;
    const found = judged({ log, minutes: 5, health: CLOSED, process: { ...gone, exitStatus: 0 } });
    expect(found).toMatchObject({ state: 'stopped', cause: 'none' });
    expect(found.crashed.for.join('; ')).toContain('line 3: someone asked it to end');
  });

  it('with nothing of it anywhere is absent, and nothing speaks for anything', () => {
    const found = judged({ health: CLOSED, more: { process: undefined, engine: undefined } });
    expect(found).toMatchObject({
      state: 'absent',
      activity: 'unknown',
      loading: { for: [] },
      hung: { for: [] },
      busy: { for: [] },
    });
  });
});
