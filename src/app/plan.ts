/**
 * `aerie plan`: what a launch will hold, whether it will live, how fast it will be, and what else would do, before anyone
 * loads a model. Nothing is started; the network is asked for a `config.json` at most.
 */
import { writeFile } from 'node:fs/promises';
import { AerieError, systemCodeOf } from '../base/errors.ts';
import type { PlannedEngine } from '../capacity/engine-launch.ts';
import { FLAG_TABLES, type MeasuredLaunch } from '../capacity/plan-launch.ts';
import { plainFactsOf } from '../diagnosis/measured-figures.ts';
import { nearMisses } from '../server/launch/near-misses.ts';
import type { RunSpec } from '../spec/run.ts';
import { calibrateFrom } from '../twin/server-of-launch.ts';
import type { OperationContext } from './context.ts';
import { findRun } from './find-run.ts';
import { type Alternative, findAlternatives, findNearestThatWorks, type PolicyPrice, pricePolicy } from './plan/alternatives.ts';
import { type Candidate, evaluate, type PlanBasis } from './plan/candidate.ts';
import { isSameModel, modelOf, observeFacts, observeLog, parsePoints, pointsOf, wordsOfLog } from './plan/observe.ts';
import { obtainShape } from './plan/obtain-shape.ts';
import { type PlayedWork, playWork } from './plan/play-work.ts';
import { askPlan, type PlanInput, type PlanQuestion } from './plan/question.ts';
import { recallLaunches, rememberLaunch } from './plan/remembered.ts';
import { PLAYED_EACH, renderSweepPlot, runSweep, type SweepRow } from './plan/run-sweep.ts';
import { parseSweeps, type Sweep } from './plan/sweep.ts';
import { obtainWork, type PlannedWork } from './plan/workload.ts';
import { readLogFacts } from './read-log.ts';

export type { PlanInput } from './plan/question.ts';

export interface PlanReport {
  readonly engine: PlannedEngine;
  readonly version: string;
  readonly model: string;
  readonly gpu: string;
  readonly asked: Candidate;
  /** What was taken for granted, one sentence each. */
  readonly assumed: readonly string[];
  /** Flags that the engine may not know, with what was probably meant. */
  readonly nearMisses: readonly string[];
  /** The smallest change that works; undefined where the launch lives, or nothing does. */
  readonly nearest: Alternative | undefined;
  readonly alternatives: readonly PlayedAlternative[];
  readonly policyPrice: PolicyPrice | undefined;
  readonly work: PlannedWork;
  /** Undefined where no workload was given, or the launch does not live. */
  readonly played: PlayedWork | undefined;
  readonly calibration: Calibrated | undefined;
  readonly sweeps: readonly Sweep[];
  readonly sweep: readonly SweepRow[];
  /** 0 = not said. */
  readonly pricePerHour: number;
  /** Path of the picture, '' where none was asked for. */
  readonly plot: string;
}

/** `played` is undefined where no workload was given. */
export type PlayedAlternative = Alternative & { readonly played: PlayedWork | undefined };

export interface Calibrated {
  readonly source: string;
  readonly points: number;
  readonly largestBatch: number;
  /** Mean of |fitted − measured| ÷ measured over the points. */
  readonly meanError: number;
}

/** As many requests as a server ever takes: the client is not what limits, unless it says so. */
const NO_CLIENT_LIMIT = 4096;

export async function runPlan(input: PlanInput, context: OperationContext): Promise<PlanReport> {
  const run = input.target === undefined ? undefined : (await findRun(input.target)).run;
  const question = askPlan(input, run);
  const sweeps = parseSweeps(input.sweeps);
  const shape = await obtainShape(question.model, context);
  const work = await obtainWork(input, longestAnswer(run), context);
  const assumed = [...question.assumed];
  if (!work.isGiven) assumed.push(`${work.source} (say how long they are with --lengths or --workload)`);
  const load = {
    requests: work.requests,
    inFlight: input.inFlight ?? (run?.isInFlightGiven === true ? run.inFlight : NO_CLIENT_LIMIT),
    longestRequestTokens: longestRequest(work),
  };
  const { observations, doubt } = await observe(input, question, context);
  if (doubt !== '') assumed.push(doubt);
  const { engine, version, gpu, policy } = question;
  const bare: PlanBasis = { engine, version, shape, gpu, observations, policy, load, measured: undefined };
  const first = evaluate(bare, question.words);
  const calibrated = await calibrateWith(input, bare, first, context);
  // From here on other launches are looked at: what was measured without flags of its own was measured at this one.
  const basis: PlanBasis = {
    ...bare,
    observations: observations.map((one) => ({ ...one, flags: one.flags ?? question.words })),
    measured: calibrated?.coefficients,
  };
  const asked = calibrated === undefined ? first : evaluate({ ...bare, measured: calibrated.coefficients }, question.words);
  const alternatives = findAlternatives(basis, asked).map((one) => ({
    ...one,
    played: work.isGiven ? playWork(basis, one.candidate, work, PLAYED_EACH) : undefined,
  }));
  const sweep = runSweep(basis, question.words, sweeps, work.isGiven ? work : undefined);
  const report: PlanReport = {
    ...{ engine, version: asked.launch.version, model: question.model, gpu: gpu.name, asked, assumed },
    nearMisses: nearMisses(asked.launch.unread, FLAG_TABLES[engine]),
    nearest: asked.prediction.verdict === 'fits' ? undefined : findNearestThatWorks(basis, asked),
    ...{ alternatives, policyPrice: pricePolicy(asked, alternatives), work, sweeps, sweep },
    played: work.isGiven ? playWork(basis, asked, work) : undefined,
    calibration: calibrated?.told,
    pricePerHour: question.pricePerHour,
    plot: input.plot ?? '',
  };
  if (input.plot !== undefined) await writePlot(input.plot, renderSweepPlot(titleOf(report), sweeps, sweep));
  return report;
}

interface Observed {
  readonly observations: readonly MeasuredLaunch[];
  /** Why the figures may not be of the model that is asked about, '' where nothing says so. */
  readonly doubt: string;
}

/** What was given on the command line comes first; what Aerie remembers stands in for it, and is not mixed with it. */
async function observe(input: PlanInput, question: PlanQuestion, { host, drain }: OperationContext): Promise<Observed> {
  const { model, engine, version, gpu } = question;
  const key = { model, engine, version, gpu: gpu.name };
  const observations: MeasuredLaunch[] = [];
  let doubt = '';
  if (input.facts !== undefined) observations.push(observeFacts(input.facts));
  if (input.log !== undefined) {
    const log = await readLogFacts(input.log, engine, drain);
    observations.push(observeLog(log, input.log));
    const named = modelOf(log);
    // A folder may be called anything, so a log is never refused for its model; it is not kept for later plans either.
    if (named !== '' && !isSameModel(named, model)) doubt = `${input.log} is of ${named}, and its figures are those of ${model}`;
    else await rememberLaunch({ ...key, version: log.version ?? version }, wordsOfLog(log), plainFactsOf(log), host);
  }
  return { observations: observations.length > 0 ? observations : await recallLaunches(key, host.env), doubt };
}

async function calibrateWith(input: PlanInput, basis: PlanBasis, { launch, prediction }: Candidate, { drain }: OperationContext) {
  if (input.calibrate === undefined) return undefined;
  const isText = /^\s*\[/.test(input.calibrate);
  const log = isText ? undefined : await readLogFacts(input.calibrate, basis.engine, drain);
  const poolTokens = log?.poolTokens ?? prediction.poolTokens;
  const points = log === undefined ? parsePoints(input.calibrate) : pointsOf(log, launch, poolTokens);
  if (points.length === 0) throw nothingToCalibrate(input.calibrate);
  const found = calibrateFrom(points, basis.shape, basis.gpu, launch);
  if (found === undefined) return undefined;
  const errors = found.points.map(({ measuredSeconds, fittedSeconds }) => Math.abs(fittedSeconds / measuredSeconds - 1));
  const meanError = errors.reduce((sum, error) => sum + error, 0) / errors.length;
  const source = isText ? 'points given with --calibrate' : input.calibrate;
  const told: Calibrated = { source, points: points.length, largestBatch: found.largestBatch, meanError };
  return { coefficients: found.coefficients, told };
}

function longestAnswer(run: RunSpec | undefined): number | undefined {
  return run === undefined ? undefined : Math.max(...run.partitions.map(({ ask }) => ask.sampling.maxTokens));
}

function longestRequest({ requests }: PlannedWork): number {
  return requests.reduce((most, { promptTokens, outputTokens }) => Math.max(most, promptTokens + outputTokens), 1);
}

function titleOf({ model, gpu, asked }: PlanReport): string {
  return `${model} on ${asked.launch.tp * asked.launch.pp} × ${gpu}`;
}

async function writePlot(path: string, svg: string | undefined): Promise<void> {
  if (svg === undefined) {
    throw new AerieError('usage.flag', '--plot needs a sweep over numbers.', {
      remedy: 'Add --sweep mem-fraction-static=0.80..0.94. Nothing was written.',
    });
  }
  await writeFile(path, svg).catch((thrown: unknown) => {
    const code = systemCodeOf(thrown);
    throw new AerieError(
      'disk.failed',
      `The plot cannot be written to ${path}: ${code}.`,
      { remedy: 'Give --plot a path in a folder that is there and can be written.' },
      thrown,
    );
  });
}

function nothingToCalibrate(path: string): AerieError {
  return new AerieError('usage.flag', `${path} holds no line of a server at work.`, {
    because: 'Looked for lines of Decode batch (SGLang) and of Avg generation throughput (vLLM).',
    remedy:
      'Give a log of a server under load, or two points: --calibrate \'[{"running":43,"tokensPerSecond":740,"contextTokens":114000}, …]\'',
  });
}
