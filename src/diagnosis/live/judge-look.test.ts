/** What process, port and counters show, against what the log alone would say. Each row is a history of looks. */
import { describe, expect, it } from 'vitest';
import { BUSY, judged, REFUSED, type Sketch, STARTING, standing, WELL } from '../../../test/support/live-looks.ts';

const GPU = 640_000;
const LOADING = [
  '[2026-02-01 10:00:00 TP0] Load weight begin. avail mem=94.14 GB',
  'Loading safetensors checkpoint shards:  45% Completed | 29/64 [00:03<00:04, 8.27it/s]',
  '',
].join('\n');
const BEGUN = '[2026-02-01 10:00:00 TP0] Load weight begin. avail mem=94.14 GB\n';
const NCCL = '[2026-02-01 10:00:00 TP0] Init torch distributed begin.\n[2026-02-01 10:00:01 TP0] sglang is using nccl==2.27.5\n';
const READY = [
  '[2026-02-01 10:00:00 TP0] max_total_num_tokens=159277, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=262144, available_gpu_mem=5.47 GB',
  '[2026-02-01 10:00:09] The server is fired up and ready to roll!',
  '',
].join('\n');
const DECODE =
  '[2026-02-01 10:01:00 TP0] Decode batch, #running-req: 34, #token: 90000, token usage: 0.56, gen throughput (token/s): 600.00, #queue-req: 116, \n';
const OOM =
  '[2026-02-01 10:02:00 TP0] Scheduler hit an exception: Traceback (most recent call last):\n  File "/srv/sglang/srt/managers/scheduler.py", line 9, in run_batch\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB.\n';

function said(log: string, history: readonly (readonly [number, Sketch])[], isAskedToEnd = false) {
  const { state, cause, phase } = judged(log, history, { isAskedToEnd });
  return { state, cause, phase };
}

describe('a start', () => {
  const still = (seconds: number, sketch: Sketch = {}) => standing(0, seconds, { health: REFUSED, logBytes: 150, ...sketch });

  it('that stands still within the phase’s limit is slow, and beyond it hung, with what stood and for how long', () => {
    expect(said(LOADING, still(480))).toEqual({ state: 'initializing', cause: 'none', phase: 'weight-loading' });
    const verdict = judged(LOADING, still(490));
    expect(verdict).toMatchObject({ state: 'hung', phase: 'weight-loading', stillForMs: 490_000, limitMs: 480_000 });
    expect(verdict.signs.join('; ')).toContain('resident memory: 10 GiB, not moved while it was watched');
    expect(verdict.signs.join('; ')).toContain('weight-loading may stand still for 8 min');
    expect(said(NCCL, still(130))).toEqual({ state: 'hung', cause: 'nccl-init-hang', phase: 'distributed-init' });
  });

  it('may fetch the image of its container for hours, layer by layer; once the image is there it is a start like any other', () => {
    const layer = "Unable to find image 'sglang:v0.5.8' locally\nv0.5.8: Pulling from sglang\nf3a1c2b4d5e6: Pulling fs layer\n";
    expect(said(layer, still(3500))).toEqual({ state: 'initializing', cause: 'none', phase: 'image-fetch' });
    expect(said(layer, still(3700))).toEqual({ state: 'hung', cause: 'container-image-stalled', phase: 'image-fetch' });
    const hours = standing(0, 10_000, {}, 20).map(
      ([at]) => [at, { health: REFUSED, logBytes: 150 + Math.floor(at / 3000) }] as const,
    );
    expect(said(layer, hours)).toEqual({ state: 'initializing', cause: 'none', phase: 'image-fetch' });
    const whole = `${layer}f3a1c2b4d5e6: Pull complete\nStatus: Downloaded newer image for sglang:v0.5.8\n`;
    expect(said(whole, still(470)).state).toBe('initializing');
    expect(said(whole, still(490))).toEqual({ state: 'hung', cause: 'unknown', phase: 'image-fetch' });
  });

  it.each<[string, (at: number) => Sketch]>([
    ['the log grows', (at) => ({ logBytes: 150 + at })],
    ['resident memory grows', (at) => ({ process: { residentBytes: at * 2 ** 20 } })],
    ['resident memory falls, as a repack ends', (at) => ({ process: { residentBytes: 2 ** 40 - at * 2 ** 24 } })],
    ['it reads', (at) => ({ process: { readBytes: at * 2 ** 20 } })],
    ['GPU memory grows', (at) => ({ process: { gpuUsedMiB: at } })],
    ['compilers work', () => ({ process: { compilers: 3 } })],
  ])('is slow and never hung while %s', (_, sketch) => {
    const history = standing(0, 7200, {}, 20).map(([at]) => [at, { health: REFUSED, ...sketch(at) }] as const);
    expect(said(LOADING, history)).toEqual({ state: 'initializing', cause: 'none', phase: 'weight-loading' });
  });

  it('is not kept alive by noise, nor by the lines of probes', () => {
    const noise = standing(0, 1000, {}).map(
      ([at]) =>
        [
          at,
          {
            health: STARTING,
            logBytes: 150,
            process: { residentBytes: 2 ** 33 + (at % 7) * 2 ** 20, gpuUsedMiB: GPU + (at % 3) },
          },
        ] as const,
    );
    expect(said(LOADING, noise)).toMatchObject({ state: 'hung' });
  });

  it('may load its first shard for half an hour in silence', () => {
    expect(said(BEGUN, still(1790))).toMatchObject({ state: 'initializing' });
    expect(said(BEGUN, still(1810))).toMatchObject({ state: 'hung', phase: 'weight-loading' });
  });

  it('answers 503 before it is ready, and 200 with an empty body makes it ready, whatever its log says', () => {
    expect(said(LOADING, still(60, { health: STARTING }))).toMatchObject({ state: 'initializing' });
    expect(said(LOADING, still(60, { health: WELL }))).toEqual({ state: 'ready', cause: 'none', phase: '' });
    expect(said('', standing(0, 20, { health: WELL }))).toEqual({ state: 'ready', cause: 'none', phase: '' });
  });
});

describe('a server at work', () => {
  const work: Sketch = { health: WELL, generated: 1000, prompted: 500, running: 34, waiting: 116, inFlight: 150 };
  const stuck = (seconds: number, sketch: Sketch = {}) => standing(0, seconds, { ...work, ...sketch });

  it('whose tokens stand while requests wait hangs after the watchdog’s time, though its port is open and health says 200', () => {
    expect(said(READY + DECODE, stuck(480))).toMatchObject({ state: 'serving' });
    const verdict = judged(READY + DECODE, stuck(490));
    expect(verdict).toMatchObject({ state: 'hung', cause: 'worker-stuck-no-progress', stillForMs: 490_000, limitMs: 480_000 });
    expect(verdict.signs[0]).toBe('no token for 8 min 10 s while 150 requests of Aerie wait; 8 min may pass');
    expect(verdict.signs.join('; ')).toContain('health: 200');
    expect(said(READY, stuck(490, { running: 0, waiting: 5 }))).toMatchObject({ cause: 'scheduler-not-admitting' });
    expect(said(READY, stuck(490, { inFlight: 0 }))).toMatchObject({ state: 'hung' });
  });

  it('waits as long as its own watchdog would', () => {
    const slow = `[2026-02-01 09:59:00] server_args=ServerArgs(model_path='m', watchdog_timeout=1200)\n${READY}`;
    expect(said(slow, stuck(1800))).toMatchObject({ state: 'serving' });
    expect(said(slow, stuck(1840))).toMatchObject({ state: 'hung' });
    expect(judged(READY, stuck(60), { workLimitMs: 50_000 })).toMatchObject({ state: 'hung', limitMs: 50_000 });
  });

  it('is serving while only prompts are computed, or only the log or the answers move', () => {
    const prefill = standing(0, 3000, {}, 20).map(([at]) => [at, { ...work, prompted: 500 + at }] as const);
    expect(said(READY, prefill)).toMatchObject({ state: 'serving', cause: 'none' });
    const log = standing(0, 3000, {}, 20).map(([at]) => [at, { health: WELL, inFlight: 3, logProgress: at }] as const);
    expect(said(READY + DECODE, log)).toMatchObject({ state: expect.stringMatching(/serving|degraded/) });
    const answers = standing(0, 3000, {}, 20).map(([at]) => [at, { ...work, answered: at }] as const);
    expect(said(READY, answers)).toMatchObject({ state: 'serving' });
  });

  it('may take minutes for one forward of a long prompt, and health may give no answer meanwhile', () => {
    expect(said(READY, stuck(400, { health: BUSY }))).toMatchObject({ state: 'unresponsive' });
    const moving = standing(0, 3000, {}, 20).map(([at]) => [at, { ...work, generated: at, health: BUSY }] as const);
    expect(said(READY, moving)).toMatchObject({ state: 'serving', cause: 'none' });
    expect(said(READY, stuck(500, { health: BUSY }))).toMatchObject({ state: 'hung' });
  });

  it('that was asked a moment ago does not hang for the hours that it was idle before', () => {
    const idle = standing(0, 7200, { ...work, running: 0, waiting: 0, inFlight: 0 }, 60);
    expect(said(READY, [...idle, ...standing(7260, 60, work)])).toMatchObject({ state: 'serving' });
    expect(said(READY, [...idle, ...standing(7260, 500, work)])).toMatchObject({ state: 'hung' });
  });

  it('is never hung while nobody asks it, whatever its health says, and its probes are no work', () => {
    const idle: Sketch = { ...work, running: 0, waiting: 0, inFlight: 0 };
    expect(said(READY, standing(0, 36_000, idle, 60))).toEqual({ state: 'ready', cause: 'none', phase: '' });
    expect(said(READY + DECODE, standing(0, 36_000, idle, 60))).toEqual({ state: 'ready', cause: 'none', phase: '' });
    expect(said(READY, standing(0, 36_000, { ...idle, health: BUSY }, 60))).toMatchObject({ state: 'unresponsive' });
  });

  it('of which nobody can tell whether tokens move is not called hung', () => {
    expect(said('', standing(0, 3000, { health: WELL, inFlight: 3 }))).toMatchObject({ state: 'serving' });
  });

  it('that closes its port is unresponsive for a time, then hung; without a process that is known, absent', () => {
    const first = [[0, { ...work, inFlight: 0, running: 0, waiting: 0 }]] as const;
    const closed: Sketch = { health: REFUSED };
    expect(said(READY, [...first, ...standing(10, 300, closed)])).toMatchObject({
      state: 'unresponsive',
      cause: 'front-end-mute',
    });
    expect(said(READY, [...first, ...standing(10, 500, closed)])).toMatchObject({ state: 'hung', cause: 'front-end-mute' });
    expect(said('', [[0, { health: WELL, isUnseen: true }], ...standing(10, 500, { ...closed, isUnseen: true })])).toMatchObject({
      state: 'absent',
    });
  });

  it('whose workers are gone hangs within two minutes, though health says 200', () => {
    const gone = standing(10, 80, { ...work, process: { children: 0 } });
    expect(said(READY, [[0, work], ...gone])).toMatchObject({ state: 'hung', cause: 'workers-gone' });
    expect(said(READY, [[0, work], ...gone.slice(0, 4)])).toMatchObject({ state: 'serving' });
    expect(said(READY, standing(0, 300, { ...work, generated: 0, process: { children: 0 } }))).toMatchObject({
      state: 'serving',
    });
  });
});

describe('an end', () => {
  const gone = (exitStatus: number | undefined, presence: 'gone' | 'zombie' = 'gone') =>
    [
      [0, { health: WELL }],
      [10, { health: REFUSED, process: { presence, exitStatus } }],
    ] as const;

  it.each<[string, string, number | undefined, string, string]>([
    ['the log’s cause', READY + OOM, 137, 'crashed', 'runtime-oom-activation'],
    ['no word, SIGKILL', READY + DECODE, 137, 'crashed', 'died-without-a-word'],
    ['no word, nobody saw it', READY, undefined, 'crashed', 'died-without-a-word'],
    ['no word in a start', LOADING, 1, 'crashed', 'died-without-a-word'],
    ['no log at all', '', 1, 'crashed', 'died-without-a-word'],
    [
      'a command that the shell did not find',
      'bash: line 20: python9: command not found\n',
      127,
      'crashed',
      'engine-not-installed',
    ],
    ['a status of a wrapper, after it was ready', READY, 127, 'crashed', 'died-without-a-word'],
    ['a segmentation fault', READY, 139, 'crashed', 'segmentation-fault'],
    ['Python’s way of saying so', READY, -11, 'crashed', 'segmentation-fault'],
    ['a bus error at work', READY, -7, 'crashed', 'dev-shm-exhausted'],
    ['a bus error while weights load', LOADING, 135, 'crashed', 'bus-error-mmap-weights'],
    ['SIGTERM', READY, 143, 'stopped', 'none'],
    ['an end in order', READY, 0, 'stopped', 'none'],
    ['a drain that ends in SIGKILL', `${READY}[2026-02-01 10:09:00] SIGTERM received. signum=None\n`, 137, 'stopped', 'none'],
  ])('%s', (_, log, exitStatus, state, cause) => {
    expect(said(log, gone(exitStatus))).toMatchObject({ state, cause });
    expect(said(log, gone(exitStatus, 'zombie'))).toMatchObject({ state, cause });
  });

  it('that Aerie asked for is a stop, whatever the engine says as it goes', () => {
    expect(said(READY + OOM, gone(137), true)).toMatchObject({ state: 'stopped', cause: 'none' });
  });

  it('says the status, and where to look', () => {
    const verdict = judged(READY, gone(137));
    expect(verdict.signs[0]).toMatch(/^the process ended with exit status 137 \(SIGKILL: the kernel/);
    expect(verdict.remedy.text).toContain('memory.events');
    expect(judged('', gone(127)).remedy.text).toContain('setup: [source');
    expect(judged('', gone(1)).evidence).toEqual([]);
    expect(judged('bash: line 20: python9: command not found\n', gone(127)).evidence).toMatchObject([{ line: 1 }]);
  });

  it('that the log does not tell shows its last line that is no probe’s, and claims no line that says so', () => {
    const probed = `${READY}${DECODE}[2026-02-01 10:01:09] INFO:     127.0.0.1:52460 - "GET /metrics HTTP/1.1" 200 OK\n`;
    const { evidence, notes } = judged(probed, gone(137));
    expect(evidence.map(({ line }) => line)).toEqual([3]);
    expect(notes).toContain('Line 2: it had been ready.');
    expect(notes.join('\n')).not.toContain('that a part ended');
  });

  it('is of no fault that the server outlived hours ago', () => {
    const later = Array.from({ length: 9 }, (_, n) =>
      DECODE.replace('10:01:00', `1${n}:30:00`).replace('2026-02-01', '2026-02-02'),
    );
    expect(said(READY + OOM + later.join(''), gone(137))).toMatchObject({ state: 'crashed', cause: 'died-without-a-word' });
  });

  it('in the log counts before the process is gone, unless tokens moved well after it', () => {
    const looks = standing(0, 100, { health: WELL, generated: 5, inFlight: 1, running: 1 });
    expect(said(READY + OOM, looks)).toMatchObject({ state: 'crashed', cause: 'runtime-oom-activation' });
    const moving = looks.map(([at, sketch]) => [at, { ...sketch, generated: at }] as const);
    expect(said(READY + OOM, moving)).toMatchObject({ state: 'serving' });
  });
});

it('is absent where no process, no port and no log is', () => {
  expect(said('', standing(0, 60, { isUnseen: true, health: REFUSED }))).toMatchObject({ state: 'absent', phase: '' });
  expect(said(READY, standing(0, 60, { isUnseen: true, health: REFUSED }))).toMatchObject({ state: 'absent' });
  expect(judged('', [])).toMatchObject({ state: 'absent' });
});
