/**
 * The lookalike as a launcher: `--as sglang@0.5.8 … -- --model-path X --port 8000 …` lives a real server's life, from the first line of its
 *
 * Exit: that of the real launcher. 2: argparse's refusal of a flag; 1: uvicorn or vLLM gave up; a signal: SIGKILL of itself, as SGLang ends.
 */
import { randomBytes } from 'node:crypto';
import { startClock } from '../clock.ts';
import { openFaultTable } from '../faults.ts';
import { openJournal } from '../journal.ts';
import type { EngineLife } from '../life.ts';
import { readScenario, type Scenario } from '../scenario.ts';
import type { Lookalike } from '../serve-generation.ts';
import { listen } from '../server.ts';
import { habitsOf } from '../serving/habits.ts';
import { openServing, type Serving } from '../serving/serving.ts';
import { parseSettings, type Settings } from '../settings.ts';
import type { Dying } from './deaths.ts';
import { dieAtWork } from './die-at-work.ts';
import { holdSignals, loseRank, strikeStart } from './endings.ts';
import { takeFlags } from './engine-flags.ts';
import { countRanks } from './envelope.ts';
import type { Launching } from './launching.ts';
import { type LifePlan, planLife } from './plan-life.ts';
import { findGpus, type Ranks, startRanks } from './ranks.ts';
import { isOfStart, openStage, type StartFault } from './stage.ts';
import { startSglang } from './start-sglang.ts';
import { startVllm } from './start-vllm.ts';
import type { AsWords } from './words.ts';

/** What the program around it does: a port file, a lifeline. */
export interface Outside {
  onListening(settings: Settings, port: number): void;
}

export async function runAsEngine(words: AsWords, outside: Outside): Promise<void> {
  const { engine, version } = words;
  const own = parseSettings(['--port', '0', ...words.own]);
  const taken = takeFlags(engine, version, words.given);
  if (taken.kind === 'help') {
    process.stdout.write(taken.text, () => process.exit(0));
    return;
  }
  if (taken.kind === 'refused') {
    process.stderr.write(taken.text);
    process.exit(2);
  }
  const scenario = readScenario(own.scenario, habitsOf(engine, version));
  await live(words, { own, taken, scenario, outside });
}

interface Given {
  readonly own: Settings;
  readonly taken: Extract<ReturnType<typeof takeFlags>, { kind: 'flags' }>;
  readonly scenario: Scenario;
  readonly outside: Outside;
}

async function live({ engine, version, own: ownWords }: AsWords, { own, taken, scenario, outside }: Given): Promise<void> {
  const { flags, model } = taken;
  const question = { engine, version, flags, model, scenario };
  const first = planLife({ ...question, othersGiB: 0 });
  if (first === undefined) refuseModel(model);
  let plan: LifePlan = first;
  let ranks: Ranks | undefined;
  let isReady = false;
  let lookalike: Lookalike | undefined;
  let bound = 0;
  const clock = startClock(own.clockRate);
  const firstGpu = flags.values['base-gpu-id'];
  const gpus = findGpus(process.env, typeof firstGpu === 'number' ? firstGpu : 0);
  const pids = () => ({ main: process.pid, ranks: ranks?.pids ?? [] });
  const strike = (fault: StartFault) => strikeStart(launching, fault);
  const stage = openStage({ clock, scenario, launch: () => plan.launch, pids, strike });
  const dying: Dying = { stage, plan: () => plan, ranks: () => ranks, scenario };
  const settings = settingsOf(own, { taken, plan, hasOwnPort: ownWords.includes('--port') });

  const launching: Launching = {
    flags,
    model,
    host: settings.host,
    port: settings.port,
    scenario,
    env: process.env,
    stage,
    dying,
    gpus,
    plan: () => plan,
    ranks: () => ranks,
    measure() {
      const held = Array.from({ length: countRanks(plan.launch) }, (_, rank) => gpus.heldByOthers(rank, ranks?.pids ?? []));
      plan = planLife({ ...question, othersGiB: Math.max(0, ...held) }) ?? plan;
      return held.map((GiB) => first.prediction.freeBeforeLoadGiB - GiB);
    },
    startRanks(titles) {
      const onDeath = (rank: number, pid: number, how: number | NodeJS.Signals) =>
        loseRank(launching, lookalike, { rank, pid, how });
      ranks = startRanks({ titles, scenario, gpus, onDeath });
    },
    actualPort: () => bound,
    async listen() {
      const serving = openServing(
        lifeOf(launching, () => isReady),
        flags.values,
      );
      lookalike = assemble(settings, scenario, serving, () => ranks?.lose());
      bound = await listen(lookalike);
      outside.onListening(settings, bound);
    },
    becomeReady() {
      stage.enter('serving', 0);
      isReady = true;
    },
  };
  holdSignals(
    launching,
    () => lookalike?.stats.inFlight ?? 0,
    () => isReady,
  );
  await (engine === 'sglang' ? startSglang(launching) : startVllm(launching));
}

function settingsOf(
  own: Settings,
  { taken, plan, hasOwnPort }: { taken: Given['taken']; plan: LifePlan; hasOwnPort: boolean },
): Settings {
  const { values } = taken.flags;
  const text = (name: string, otherwise: string) => {
    const value = values[name];
    return typeof value === 'string' ? value : otherwise;
  };
  const usual = plan.launch.engine === 'sglang' ? 30_000 : 8000;
  const port = values['port'];
  return {
    ...own,
    host: text('host', '127.0.0.1'), // the real vLLM takes all addresses; here none but loopback unless asked
    port: typeof port === 'number' ? port : hasOwnPort ? own.port : usual,
    servedModelName: text('served-model-name', taken.model),
    maxModelLen: plan.launch.contextTokens,
  };
}

function assemble(settings: Settings, scenario: Scenario, serving: Serving, loseSchedulers: () => void): Lookalike {
  const { clock } = serving.life;
  const life = randomBytes(4).toString('hex'); // 8 hex digits: enough to tell the lives in one journal apart
  const die = (exitCode: number | undefined) => {
    if (exitCode === undefined) process.kill(process.pid, 'SIGKILL');
    else process.exit(exitCode);
  };
  return {
    settings,
    scenario,
    clock,
    life,
    journal: openJournal(settings.journal, life, clock.now),
    faults: openFaultTable(
      scenario.faults.filter((fault) => !isOfStart(fault)),
      clock,
      die,
      (fault) => (fault.do === 'schedulers-die' ? loseSchedulers() : serving.fail(fault)),
    ),
    stats: { received: 0, answered: 0, aborted: 0, inFlight: 0, maxInFlight: 0 },
    serving,
    die,
  };
}

function lifeOf(launching: Launching, isReady: () => boolean): EngineLife {
  const { stage, plan } = launching;
  const { launch, prediction, shape, gpu, prefillNeedGiB } = plan();
  const chunk = launch.prefillChunkTokens > 0 ? launch.prefillChunkTokens : launch.maxPrefillTokens;
  const needGiB = (newTokens: number) => (prefillNeedGiB * newTokens) / Math.max(1, chunk);
  return {
    engine: launch.engine,
    version: launch.version,
    launch,
    prediction,
    shape,
    gpu,
    clock: stage.clock,
    wall: () => stage.wall(),
    log: (line, rank) => stage.say(line, rank === undefined ? {} : { rank }),
    phase: () => stage.phase(),
    isReady: () => isReady() && stage.phase() !== 'draining',
    canPrefill: (newTokens) => launch.engine === 'vllm' || needGiB(newTokens) <= prediction.freeAfterGraphsGiB,
    dieOutOfMemory: (newTokens) => dieAtWork(launching, needGiB(newTokens)),
  };
}

function refuseModel(model: string): never {
  process.stderr.write(
    `Traceback (most recent call last):\n  File "<frozen runpy>", line 198, in _run_module_as_main\nOSError: ${model} is not a local folder and is not a valid model identifier listed on 'https://huggingface.co/models'\nIf this is a private repository, make sure to pass a token having permission to this repo.\n`,
  );
  process.exit(1);
}
