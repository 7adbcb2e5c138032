/**
 * `aerie rehearse`: plays a run with the lookalike engine in the place of every server that Aerie would launch, on a fast clock:
 * the real launches, verdicts, recovery and generation, with the run file's own flags and prompts, and no GPU. The run itself is
 * neither begun nor touched.
 *
 * Promise: what was started here is stopped by its identity and the folder removed, also after an error and after Ctrl-C.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { AerieError } from '../base/errors.ts';
import type { Event } from '../base/events.ts';
import { scaledClock } from '../host/scaled-clock.ts';
import type { RunSpec } from '../spec/run.ts';
import type { OperationContext } from './context.ts';
import { findRun } from './find-run.ts';
import type { PartitionReport } from './partition-report.ts';
import { answerLengths } from './plan/workload.ts';
import { rulesOf } from './policy-in-force.ts';
import { readLogFacts } from './read-log.ts';
import { engineWords, listLaunches, type RehearsedLaunch, type SettledLoad, settledLoad } from './rehearse/account.ts';
import { type LookalikeServer, prepareLookalike, readScenarioOver } from './rehearse/lookalike-server.ts';
import { stopRehearsed } from './rehearse/stop-rehearsed.ts';
import { sizeWholeRun, type WholeRun } from './rehearse/whole-run.ts';
import { workOn } from './run.ts';
import { isLaunched } from './server/choose-servers.ts';
import { firstPromptsOf, isStop, makeThrowaway, stoppedEarly, withoutFolder } from './throwaway.ts';

export interface RehearseInput {
  readonly run: string;
  /** Most prompts that are asked, over all partitions. */
  readonly prompts?: number;
  /** How many times faster than the world it is played. */
  readonly rate?: number;
  /** How long answers are, as `aerie plan` takes it. */
  readonly lengths?: string;
  /** A scenario of the lookalike, laid over the one that is made here: facts of the machine, faults. */
  readonly scenario?: string;
}

export interface RehearsalReport {
  readonly run: string;
  /** Every prompt was answered or set aside, and no server was given up. */
  readonly wentThrough: boolean;
  /** What stopped it; undefined where nothing did. */
  readonly stoppedBy: Stopped | undefined;
  readonly servers: readonly RehearsedServer[];
  readonly prompts: number;
  readonly records: number;
  readonly setAside: number;
  /** Tokens a second of all servers, by the lookalike's clock; 0 = none worked. */
  readonly tokensPerSecond: number;
  readonly whole: WholeRun;
  /** For the whole run at this pace; undefined = not known. */
  readonly hours: number | undefined;
  /** 0 = not said. */
  readonly pricePerHour: number;
  readonly inFlight: number;
  readonly rate: number;
  /** What was taken for granted or left out, one sentence each. */
  readonly assumed: readonly string[];
}

export interface Stopped {
  readonly code: string;
  readonly message: string;
  readonly evidence: readonly string[];
  readonly remedy: string;
}

export interface RehearsedServer {
  readonly name: string;
  readonly engine: string;
  readonly version: string;
  readonly gpus: number;
  readonly gpu: string;
  readonly launches: readonly RehearsedLaunch[];
  /** Undefined: it never worked. */
  readonly load: SettledLoad | undefined;
}

const MOST_PROMPTS = 200; // fills a server of the usual size and is answered in minutes
const RATE = 60; // an hour in a minute; two cores follow

export async function runRehearse(input: RehearseInput, context: OperationContext): Promise<RehearsalReport> {
  const { run } = await findRun(input.run);
  const launched = run.servers.filter(isLaunched);
  if (launched.length === 0) throw nothingToRehearse(run);
  const policy = await rulesOf(input.run, run, context.host);
  const folder = await makeThrowaway('rehearse');
  try {
    return await rehearse({ input, run: { ...run, policy, servers: launched }, folder, all: run }, context);
  } finally {
    // A shell that writes how a launch ended may be one file late.
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

interface Rehearsal {
  readonly input: RehearseInput;
  /** With the servers that are launched, and the rules in force. */
  readonly run: RunSpec;
  /** As the run file has it. */
  readonly all: RunSpec;
  readonly folder: string;
}

async function rehearse({ input, run, all, folder }: Rehearsal, context: OperationContext): Promise<RehearsalReport> {
  const { rate = RATE, prompts: most = MOST_PROMPTS } = input;
  const longest = Math.max(...run.partitions.map(({ ask }) => ask.sampling.maxTokens));
  const { lengths, words } = answerLengths(input.lengths, longest);
  const scenario = await readScenarioOver(input.scenario ?? '');
  const servers = new Map<string, LookalikeServer>();
  for (const server of run.servers) {
    const request = { run, server, folder: join(folder, 'machines', server.name), lengths, rate, scenario };
    servers.set(server.name, await prepareLookalike(request, context));
  }
  const played: RunSpec = {
    ...firstPromptsOf(run, join(folder, 'run'), most),
    serverFolder: join(folder, 'run'),
    servers: [...servers.values()].map(({ spec }) => spec),
  };
  const assumed = [...assumedOf(all, words, most), ...[...servers.values()].flatMap((server) => server.assumed)];
  const { events, partitions, error } = await play(played, servers, { input, rate, folder }, context);
  const rehearsed: RehearsedServer[] = [];
  for (const { name, engine } of run.servers) {
    const server = servers.get(name);
    if (server === undefined) continue;
    const log = await readLogFacts(join(folder, 'run', 'logs', `${name}.log`), engine === 'vllm' ? 'vllm' : 'sglang').catch(
      () => undefined, // never launched
    );
    const { version, gpus, gpu } = server;
    const launches = listLaunches(name, events);
    rehearsed.push({ name, engine, version, gpus, gpu: gpu.name, launches, load: log && settledLoad(log.samples) });
  }
  const tokensPerSecond = rehearsed.reduce((sum, { load }) => sum + (load?.tokensPerSecond ?? 0), 0);
  const whole = await sizeWholeRun(run, partitions, context);
  const sum = (of: (partition: PartitionReport) => number) => partitions.reduce((so, partition) => so + of(partition), 0);
  return {
    ...{ run: run.name, wentThrough: error === undefined, stoppedBy: error && describeStop(error, folder), servers: rehearsed },
    ...{ prompts: sum(({ enrolled }) => enrolled), records: sum(({ done }) => done), setAside: sum(({ aside }) => aside) },
    ...{ tokensPerSecond, whole, pricePerHour: run.pricePerHour, inFlight: run.inFlight, rate, assumed },
    hours: whole.tokens === undefined || tokensPerSecond === 0 ? undefined : whole.tokens / tokensPerSecond / 3600,
  };
}

interface Played {
  readonly events: readonly Event[];
  readonly partitions: readonly PartitionReport[];
  /** What stopped it, where that is an answer and not a mistake of who asks. */
  readonly error: AerieError | undefined;
}

async function play(
  run: RunSpec,
  servers: ReadonlyMap<string, LookalikeServer>,
  { input, rate, folder }: { readonly input: RehearseInput; readonly rate: number; readonly folder: string },
  context: OperationContext,
): Promise<Played> {
  const events: Event[] = [];
  const inLab: OperationContext = {
    ...context,
    host: { ...context.host, clock: scaledClock(context.host.clock, rate) },
    lab: {
      machineOf({ name }) {
        const machine = servers.get(name)?.machine;
        if (machine === undefined) throw new Error(`${name} is not rehearsed`);
        return machine;
      },
    },
    // The run itself neither begins nor ends here, and its servers do not go on.
    onEvent(event) {
      events.push(event);
      if (!/^(run|shard)\.|^server\.left-running$/.test(event.kind)) context.onEvent(asTold(event));
    },
  };
  try {
    const { partitions } = await workOn(run, input.run, inLab);
    return { events, partitions, error: undefined };
  } catch (thrown) {
    if (!(thrown instanceof AerieError)) throw thrown;
    if (isStop(thrown)) throw stoppedEarly(thrown, 'The rehearsal');
    if (!/^server\.|^policy\.broken$/.test(thrown.code)) throw withoutFolder(thrown, folder, 'a rehearsal');
    return { events, partitions: [], error: thrown };
  } finally {
    await stopRehearsed(run, inLab);
  }
}

/** The lookalike's own words say nothing to a person, and its folder is gone in a moment. */
function asTold(event: Event): Event {
  const { line } = event.facts;
  return typeof line === 'string' ? { ...event, facts: { ...event.facts, line: `as a lookalike: ${engineWords(line)}` } } : event;
}

function describeStop({ code, message, detail }: AerieError, folder: string): Stopped {
  const remedy = detail.remedy
    .split('\n')
    .filter((line) => !line.includes(folder) && !/^Then run the same command|^What is committed/.test(line))
    .join('\n');
  return { code, message, evidence: detail.evidence ?? [], remedy };
}

function assumedOf(run: RunSpec, words: string, most: number): string[] {
  const left = run.servers.filter((server) => !isLaunched(server)).map(({ name }) => name);
  return [
    ...(left.length === 0 ? [] : [`left out, because Aerie does not launch them as SGLang or vLLM: ${left.join(', ')}`]),
    `answers ${words}, at most what max-tokens says (say otherwise with --lengths)`,
    'prompts count a token for each byte, about four times what a tokenizer counts',
    ...(run.inFlight > most ? [`at most ${most} requests run at once, because no more prompts are asked (--prompts)`] : []),
    'host memory, /dev/shm and disk are taken to suffice; setup, env, command, workdir and log of the run file are not used',
  ];
}

function nothingToRehearse(run: RunSpec): AerieError {
  const names = run.servers.map(({ name, attach, engine }) => `${name} (${attach === undefined ? engine : 'attached'})`);
  return new AerieError('usage.flag', `${run.file} has no server that a rehearsal could play.`, {
    because: `Servers that Aerie launches as SGLang or vLLM are played; here are ${names.join(', ')}.`,
    remedy: 'Write engine: sglang or vllm with flags: and without attach: there. Nothing was started.',
  });
}
