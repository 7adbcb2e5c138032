/** The line that a person reads while a server starts, from lines of real logs cut where they are. */
import { describe, expect, it } from 'vitest';
import { accountOf, readCorpus } from '../../../test/support/diagnose-log.ts';
import { looksOf, REFUSED, type Sketch, standing } from '../../../test/support/live-looks.ts';
import { describeProgress } from './describe-progress.ts';

const GIB = 2 ** 30;
const LOGS = new Map(readCorpus().map(({ name, text }) => [name, text]));

function said(log: string, history: readonly (readonly [number, Sketch])[] = [], gpuTotalMiB?: number): string {
  return describeProgress(accountOf(log), looksOf(history), gpuTotalMiB);
}

const BAR = (done: number, each: string) =>
  `[2026-02-01 10:00:00 TP0] Load weight begin. avail mem=94.14 GB\nLoading safetensors checkpoint shards:  ${Math.floor((100 * done) / 64)}% Completed | ${done}/64 [00:03<00:04, ${each}]\n`;

describe('while weights load', () => {
  it('counts shards, rates and what is left', () => {
    expect(said(BAR(16, '4.50s/it'))).toBe('loading weights 16 of 64 (25%) · 4.5 s each · about 3 min 36 s left');
    expect(said(BAR(29, '8.27it/s'))).toBe('loading weights 29 of 64 (45%) · 8.3 a second · about 4 s left');
    expect(said(BAR(0, '?it/s'))).toBe('loading weights 0 of 64 (0%)');
  });

  it('says what it reads and what stands on the GPUs', () => {
    const history = standing(0, 60, {}).map(
      ([at]) => [at, { health: REFUSED, process: { readBytes: at * 1.2 * GIB, gpuUsedMiB: 45 * 1024 } }] as const,
    );
    expect(said(BAR(16, '4.50s/it'), history, 72 * 1024)).toContain('· reads 1.2 GiB/s · GPU 45 of 72 GiB');
  });

  it('after the last shard says that repacking prints nothing, and then that weights are loaded', () => {
    expect(said(BAR(64, '8.27it/s'))).toBe('weights are read (64 of 64), repacking takes 70–80 s and prints nothing');
    const end =
      '[2026-02-01 10:02:00 TP0] Load weight end. type=X, dtype=torch.bfloat16, avail mem=21.82 GB, mem usage=72.33 GB.\n';
    expect(said(BAR(64, '8.27it/s') + end)).toBe('weights are loaded (64 of 64)');
  });

  it('tells silence against its limit, and only once it is one', () => {
    const still = (seconds: number) => standing(0, seconds, { health: REFUSED, process: { gpuUsedMiB: 1024 } });
    expect(said(BAR(16, '4.50s/it'), still(20))).not.toContain('nothing has moved');
    expect(said(BAR(16, '4.50s/it'), still(120))).toMatch(/ · nothing has moved for 2 min of 8 min$/);
  });

  it('counts compilers', () => {
    expect(said('', standing(0, 10, { process: { compilers: 12, gpuUsedMiB: 2048 } }))).toBe(
      'starting · GPU 2 GiB · 12 compilers at work',
    );
  });
});

it('that waits for the image of its container says so, and when it is there', () => {
  const pull = "Unable to find image 'sglang' locally\nlatest: Pulling from sglang\nf3a1c2b4d5e6: Pulling fs layer\n";
  expect(said(pull, standing(0, 600, { health: REFUSED, process: { gpuUsedMiB: undefined } }))).toBe(
    'fetching the image of its container · nothing has moved for 10 min of 1 h',
  );
  expect(said(`${pull}Status: Downloaded newer image for sglang\n`)).toBe('starting: its image is there');
});

it.each([
  ['091-sglang-eight-ranks-loading-weights', /^loading weights \d+ of 30 \(\d+%\)/],
  ['013-sglang-graph-capture-deepgemm-inside', /^capturing CUDA graphs .*kernels are compiled the first time/],
  ['084-sglang-capture-running-swa-pool', /^capturing CUDA graphs \d+ of 16/],
  ['027-vllm-ready-with-userwarnings', /^ready$/],
  ['078-vllm-slow-load-70b-h200', /^profiling memory$/],
])('%s', (name, line) => {
  expect(said(LOGS.get(name) ?? '')).toMatch(line);
});

it('counts the shards of a real slow load, bar by bar', () => {
  const lines = (LOGS.get('026-vllm-slow-load-compose-interleaved') ?? '').split('\n').filter((line) => line.includes('shards:'));
  const told = lines.map((_, at) => said(lines.slice(0, at + 1).join('\n')));
  expect(told).toEqual([
    'loading weights 0 of 5 (0%)',
    'loading weights 1 of 5 (20%) · 99 s each · about 6 min 36 s left',
    'loading weights 2 of 5 (40%) · 101 s each · about 5 min 3 s left',
    'loading weights 3 of 5 (60%) · 103 s each · about 3 min 26 s left',
  ]);
});

it('has one line without a figure that is none, at every cut of every log', () => {
  for (const [name, text] of LOGS) {
    const lines = text.split('\n').slice(0, 120);
    for (let end = 0; end <= lines.length; end += 7) {
      const line = said(lines.slice(0, end).join('\n'), standing(0, 20, { process: { readBytes: 0, residentBytes: 0 } }));
      expect(line, `${name}, ${end}`).not.toMatch(/NaN|undefined|Infinity|\n/);
      expect(line.length).toBeGreaterThan(3);
    }
  }
});
