/**
 * The twin's speed, and the story of two launches played by it. `npm run bench:twin [-- --requests 100000 --rounds 3]`; no build needed.
 *
 * Speed: 100,000 requests of 4,000 tokens in the mean, 150 in flight, a pool of 159,277 tokens; and the same load, smaller,
 * beside a walk step by step that gives the same endings at the same times (it is the judge of the twin's tests).
 * Story: one distribution of lengths, fitted on the bf16 launch, used unchanged on the FP8 launch. Prints Markdown.
 */
import { register } from 'node:module';
import { parseArgs } from 'node:util';
import { load, machine, median, withRange } from './statistics.mjs';

register('../scripts/typescript-hooks.mjs', import.meta.url);
const { playLoad } = await import('../src/twin/play-load.ts');
const { drawRequests, sigmaOfCv } = await import('../src/twin/lengths.ts');
const { seededRandom } = await import('../src/twin/seeded-random.ts');
const { stepSeconds, withKvBytes } = await import('../src/twin/calibrate.ts');
const { difference } = await import('../src/twin/tally.ts');
const { Twin } = await import('../src/twin/twin.ts');
const { playStepByStep } = await import('../test/support/step-by-step/play-step-by-step.ts');
const story = await import('../test/support/story.ts');

const { values: flags } = parseArgs({
  options: {
    requests: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '3' },
    small: { type: 'string', default: '2000' },
  },
});
const stepTime = story.storyStepTime();
const bf16 = story.storyServer(159_277, stepTime);

const drawn = (count, seed) =>
  drawRequests(
    {
      ...{ count, prompt: { kind: 'lognormal', mean: 700, sigma: 0.8, most: 8000 }, maxNewTokens: 16_384, commonPrefixTokens: 0 },
      output: { kind: 'lognormal', mean: 4120, sigma: sigmaOfCv(1), most: 16_384 }, // 4,000 after the cut
    },
    seededRandom(seed),
  );

function timed(work) {
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  const result = work();
  const { user, system } = process.cpuUsage(cpu);
  return { seconds: (performance.now() - startedAt) / 1000, cpuSeconds: (user + system) / 1e6, result };
}

function speed() {
  const requests = drawn(Number(flags.requests), 1);
  const loads = [];
  const rounds = Array.from({ length: Number(flags.rounds) }, () => {
    loads.push(load());
    return timed(() => playLoad(bf16, { requests, arrivals: { kind: 'closed', inFlight: 150 } }));
  });
  const small = { requests: drawn(Number(flags.small), 2), arrivals: { kind: 'closed', inFlight: 150 } };
  const walked = timed(() => playStepByStep(bf16, small));
  const jumped = Array.from({ length: 5 }, () => timed(() => playLoad(bf16, small)));
  const { result } = rounds[0];
  const same =
    Math.abs(jumped[0].result.seconds / walked.result.seconds - 1) < 1e-9 &&
    jumped[0].result.generatedTokens === walked.result.generatedTokens;
  if (!same) throw new Error('the two plays differ: their ratio would mean nothing');
  console.log(`${machine(loads)}; ${flags.rounds} rounds\n`);
  console.log('| load | wall seconds | CPU seconds |\n|---|---|---|');
  const row = (name, runs) =>
    console.log(
      `| ${name} | ${withRange(
        runs.map((run) => run.seconds),
        2,
      )} | ${withRange(
        runs.map((run) => run.cpuSeconds),
        2,
      )} |`,
    );
  const mean = result.generatedTokens / requests.length;
  row(`${requests.length.toLocaleString('en')} requests, mean ${mean.toFixed(0)} out, 150 in flight, pool 159,277`, rounds);
  row(`${flags.small} of them, step by step`, [walked]);
  row(`${flags.small} of them, the twin`, jumped);
  const ratio = walked.cpuSeconds / median(jumped.map((run) => run.cpuSeconds));
  console.log(`\nRatio of the last two rows (CPU): ${ratio.toFixed(0)}x, with equal endings.`);
  console.log(
    `The load itself: ${result.hours.toFixed(0)} h of server time, ${result.whole.running.toFixed(1)} running, ${result.whole.retractions} retractions.`,
  );
}

/** Means between two moments of a run that has just begun: the requests are young, their contexts short. */
function opening(server, requests, fromSeconds, toSeconds) {
  let sent = 150;
  const twin = new Twin(server, {
    onEvent: ({ kind }) => {
      if (kind === 'ended' && sent < requests.length) twin.submit(requests[sent++]);
    },
  });
  for (const request of requests.slice(0, sent)) twin.submit(request);
  twin.advance(fromSeconds);
  const before = twin.sums;
  twin.advance(toSeconds);
  const sums = difference(twin.sums, before);
  const per = (key) => sums[key] / sums.seconds;
  return `${per('runningSeconds').toFixed(0)} running, ${per('queuedSeconds').toFixed(0)} queued, ${per('generatedTokens').toFixed(0)} tok/s`;
}

function tellStory() {
  console.log('\n## One distribution of lengths, fitted on 0.88 bf16, used unchanged on 0.90 fp8\n');
  console.log(
    '| deviation ÷ mean of the answers | their mean | live context | bf16: running | tok/s | fp8: running | queued | tok/s | fp8, minutes 2 to 5 |',
  );
  console.log('|---|---|---|---|---|---|---|---|---|');
  console.log('| *seen* | | | 34–35 | 600 | 134–150 | 0 | 1,300–1,450 | |');
  const fp8 = story.storyServer(376_029, withKvBytes(stepTime, story.BF16_BYTES, story.FP8_BYTES));
  for (const cv of [0.25, 0.5, 1]) {
    const fitted = story.fitStory(stepTime, cv);
    const requests = drawRequests(fitted.load, seededRandom(11));
    const played = playLoad(fp8, { requests, arrivals: { kind: 'closed', inFlight: 150 } });
    const [before, after] = [fitted.played.steady, played.steady];
    const mean = requests.reduce((sum, { outputTokens }) => sum + outputTokens, 0) / requests.length;
    const cells = [
      cv,
      mean,
      before.liveContextTokens,
      before.running,
      before.tokensPerSecond,
      after.running,
      after.queued,
      after.tokensPerSecond,
    ];
    const digits = [2, 0, 0, 1, 0, 0, 0, 0];
    console.log(`| ${cells.map((cell, at) => cell.toFixed(digits[at])).join(' | ')} | ${opening(fp8, requests, 60, 300)} |`);
  }
  const seen = { running: 142, contextTokens: 0.97 * 376_029 };
  const speedSeen = 142 / stepSeconds(withKvBytes(stepTime, story.BF16_BYTES, story.FP8_BYTES), fp8.graphBatchSizes, seen);
  console.log(`\nStep time, calibrated on 34 and 42 running, asked for the 142 that were seen: ${speedSeen.toFixed(0)} tok/s.`);
  console.log(
    `\n${story
      .storyGain()
      .lines.map((line) => `- ${line}`)
      .join('\n')}`,
  );
}

speed();
tellStory();
