/**
 * One server under a probe: asks it over HTTP, takes what surveys saw of its process and its log, and puts both readings together.
 * What moves it: `begin` starts the questions; `see` takes a survey; `reading` closes one of the two readings. It judges nothing.
 */
import type { ProcessSigns } from '../../diagnosis/live/look.ts';
import type { KernelSign, ProbeEvidence, Reading, SeenProcess } from '../../diagnosis/probe/evidence.ts';
import { LogReader } from '../../diagnosis/read-log.ts';
import type { EngineCounters } from '../../engine/counters.ts';
import type { EngineName } from '../../engine/dialect.ts';
import { dialectOf } from '../../engine/dialects.ts';
import type { Clock, Host } from '../../host/host.ts';
import type { HttpClient } from '../../host/http.ts';
import { listeningInodes } from '../../machine/listeners.ts';
import { hasEnded } from '../../machine/parse-stat.ts';
import type { Machine, Reach } from '../../machine/machine.ts';
import { familyOf, type FamilySigns, orphanRanks } from '../../machine/survey/processes.ts';
import type { MemoryGroup, Survey, SurveyedLog } from '../../machine/survey/survey.ts';
import { checkRemedy } from '../check-remedy.ts';
import {
  type AskedHealth,
  type AskedServer,
  askCounters,
  askFacts,
  askHealthOnce,
  HEALTH_WAITS_MS,
  type ToldFacts,
} from './ask-server.ts';
import type { LogReading } from './log-reading.ts';
import type { ProbedProcess } from './report.ts';
import type { Subject } from './subject.ts';

export interface ProbeWorld {
  readonly host: Host;
  /** Real time, whatever rate the rest lives at: what is probed lives in the world. */
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** By the clock: when all must be over. */
  readonly endsAt: number;
}

/** What is left for the second reading when health has been waited for. */
const LAST_READING_MS = 2_500;

export class ServerProbe {
  readonly subject: Subject;
  readonly #machine: Machine;
  readonly #world: ProbeWorld;
  readonly #readings: Reading[] = [];
  readonly unseen: string[] = [];
  #reach: Reach | undefined;
  #client: HttpClient | undefined;
  #isBegun = false;
  #asked: AskedServer | undefined;
  #healthPending: Promise<void> | undefined;
  #health: AskedHealth | undefined;
  #facts: ToldFacts | undefined;
  #factsPending: Promise<void> | undefined;
  #counters: EngineCounters | undefined;
  #ownChecks = 0;
  #survey: Survey | undefined;
  #pid = 0;
  #port: number;
  #portAddress: string;
  #family: FamilySigns | undefined;
  #surveyedLog: SurveyedLog | undefined;
  log: LogReading | undefined;

  constructor(subject: Subject, machine: Machine, world: ProbeWorld) {
    this.subject = subject;
    this.#machine = machine;
    this.#world = world;
    this.#pid = subject.pid;
    this.#port = subject.port;
    this.#portAddress = subject.address;
  }

  get health(): AskedHealth | undefined {
    return this.#health;
  }

  get facts(): ToldFacts | undefined {
    return this.#facts;
  }

  get pid(): number {
    return this.#pid;
  }

  get survey(): Survey | undefined {
    return this.#survey;
  }

  /** As the run file, the command line, the answers or the log tell. */
  get engine(): EngineName | undefined {
    return this.subject.engine ?? this.#facts?.engine ?? this.log?.account().facts.engine;
  }

  get address(): string {
    const { url } = this.subject;
    if (url !== '') return url;
    return this.#port === 0 ? '' : `http://${this.#portAddress === '' ? '127.0.0.1' : this.#portAddress}:${this.#port}`;
  }

  /** Starts the questions that take long; they are not waited for. */
  async begin(): Promise<void> {
    const { url, headers } = this.subject;
    if (this.#isBegun || (url === '' && this.#port === 0)) return;
    this.#isBegun = true;
    const { host, clock, signal } = this.#world;
    const address = this.#portAddress === '' ? undefined : this.#portAddress;
    const reach = url === '' ? await this.#machine.reach(this.#port, address) : undefined;
    this.#reach = reach;
    const client = host.openHttp({ baseUrl: reach?.baseUrl ?? url, connections: 12, headers });
    this.#client = client;
    this.#asked = { client, clock, signal };
    this.#askHealth();
    this.#factsPending = this.#askAccount(this.#asked);
  }

  /** Health once more: whoever refused may have opened its port, or closed it. */
  async askAgain(): Promise<void> {
    const kind = this.#health?.health.kind;
    if (this.#asked === undefined || (kind !== undefined && kind !== 'refused')) return;
    if (kind === 'refused') this.#askHealth();
    await this.#healthPending;
  }

  /** Until health has answered; the signal ends all. */
  async untilHealth(): Promise<void> {
    await this.#healthPending;
  }

  async untilFacts(): Promise<void> {
    await this.#factsPending;
  }

  #askHealth(): void {
    const asked = this.#asked;
    if (asked === undefined) return;
    const { clock, endsAt } = this.#world;
    const path = dialectOf(this.engine ?? 'sglang').healthRequest.path;
    this.#ownChecks += 1;
    // A way that is not there yet refuses in place of the server: that is no answer of its own.
    const isWay = this.#reach?.isOpen() ?? true;
    const waitMs = Math.max(0, Math.min(HEALTH_WAITS_MS, endsAt - LAST_READING_MS - clock.elapsed()));
    this.#healthPending = askHealthOnce(asked, path, waitMs).then((said) => {
      if (said.health.kind === 'refused' && !(isWay && (this.#reach?.isOpen() ?? true))) return;
      this.#health = said;
    });
  }

  async #askAccount(asked: AskedServer): Promise<void> {
    this.#counters = this.subject.engine === undefined ? undefined : await askCounters(asked, this.subject.engine);
    this.#facts = await askFacts(asked, this.subject.engine, this.subject.known?.run.model ?? '');
    if (this.#counters === undefined && this.engine !== undefined) this.#counters = await askCounters(asked, this.engine);
  }

  /** A survey of its machine: which process it is, what its log is, and how both stand. */
  see(survey: Survey): void {
    this.#survey = survey;
    if (this.#pid === 0) this.#pid = this.#findPid(survey);
    const found = this.#port === 0 ? survey.engines.find(({ pid }) => pid === this.#pid) : undefined;
    if (found !== undefined) {
      this.#port = found.port;
      this.#portAddress = found.address === '127.0.0.1' ? '' : found.address;
    }
    const { table } = survey;
    this.#family = table.has(this.#pid) && !this.#isAnother(survey) ? familyOf(table, this.#pid) : undefined;
    this.#surveyedLog ??=
      [...survey.logs.values()].find(({ path }) => path === this.subject.logPath) ?? survey.details.get(this.#pid)?.log;
  }

  get surveyedLog(): SurveyedLog | undefined {
    return this.#surveyedLog;
  }

  /** Where its log can be read on its machine; '' = nowhere that is known. */
  get logPath(): string {
    if (this.subject.logPath !== '') return this.subject.logPath;
    return this.#surveyedLog?.kind === 'read' && this.#pid !== 0 ? `/proc/${this.#pid}/fd/1` : '';
  }

  /** By its port, or by the file that its stdout is. */
  #findPid({ engines, details, logs }: Survey): number {
    const { port, url, logPath } = this.subject;
    const isHere = url === '' || port !== 0;
    const byPort = port === 0 || !isHere ? undefined : engines.find((one) => one.port === port);
    if (byPort !== undefined) return byPort.pid;
    const file = [...logs.values()].find(({ path }) => path === logPath)?.file ?? '';
    const byLog = file === '' ? undefined : engines.find(({ pid }) => details.get(pid)?.log?.file === file);
    return byLog?.pid ?? 0;
  }

  #isAnother({ table, bootId }: Survey): boolean {
    const { identity } = this.subject;
    return identity !== undefined && (table.get(identity.pid)?.startTicks !== identity.startTicks || identity.bootId !== bootId);
  }

  get isUnread(): boolean {
    return this.#readings.length === 0;
  }

  /** Closes a reading: what is known now. */
  async read(): Promise<void> {
    const { clock } = this.#world;
    const engine = this.engine;
    if (this.#asked !== undefined && engine !== undefined && this.#readings.length > 0)
      this.#counters = this.#health?.health.kind === 'refused' ? undefined : await askCounters(this.#asked, engine);
    this.#readings.push({ atMs: clock.elapsed(), account: this.#account(), process: this.#signs(), counters: this.#counters });
  }

  #account() {
    return (this.log ?? new LogReader()).account();
  }

  #signs(): ProcessSigns | undefined {
    const survey = this.#survey;
    if (survey === undefined || survey.table.size === 0) return undefined;
    if (this.#pid === 0) return this.#isNobody(survey) ? NOBODY : undefined;
    const main = survey.table.get(this.#pid);
    const isThere = main !== undefined && !this.#isAnother(survey);
    const gpus = survey.gpus?.kind === 'read' ? survey.gpus.gpus : undefined;
    const { residentBytes, readBytes, compilers = 0, children = 0 } = this.#family ?? {};
    return {
      presence: !isThere ? 'gone' : hasEnded(main.state) ? 'zombie' : 'running',
      exitStatus: this.#exitStatus(survey),
      ...{ residentBytes, readBytes, compilers, children },
      gpuUsedMiB: gpus?.reduce((sum, { usedMiB }) => sum + usedMiB, 0),
    };
  }

  /** An engine wrote the log, all processes of the machine can be seen, and none of them is it. */
  #isNobody({ seesAll }: Survey): boolean {
    const isItsMachine = this.subject.url === '' || this.#port !== 0;
    const isAnswered = this.#health?.health.kind === 'http' || this.#health?.health.kind === 'timeout';
    return seesAll && isItsMachine && !isAnswered && this.log !== undefined && this.log.account().recognised > 0;
  }

  #exitStatus({ files }: Survey): number | undefined {
    const text = files.get(statusNameOf(this.subject))?.trim() ?? '';
    return /^\d+$/.test(text) ? Number(text) : undefined;
  }

  get process(): ProbedProcess | undefined {
    const [survey, signs] = [this.#survey, this.#signs()];
    if (survey === undefined || signs === undefined || this.#pid === 0) return undefined;
    const memory = survey.details.get(this.#pid)?.memory ?? groupAround(survey);
    const { usedBytes, limitBytes, oomKills } = memory;
    return {
      ...{ pid: this.#pid, command: this.#command(survey), presence: signs.presence, ageMs: this.#age(survey) },
      ...{
        exitStatus: signs.exitStatus,
        residentBytes: signs.residentBytes,
        children: signs.children,
        container: memory.container,
      },
      memory: {
        ...(usedBytes === undefined ? {} : { usedBytes }),
        ...(limitBytes === undefined ? {} : { limitBytes }),
        ...(oomKills === undefined ? {} : { oomKills }),
      },
    };
  }

  #command({ table, engines }: Survey): string {
    const found = engines.find(({ pid }) => pid === this.#pid)?.command ?? table.get(this.#pid)?.command;
    return found ?? this.subject.identity?.command ?? '';
  }

  #age({ table, uptimeMs, tickMs }: Survey): number | undefined {
    const main = table.get(this.#pid);
    return main === undefined || uptimeMs === 0 ? undefined : Math.max(0, uptimeMs - main.startTicks * tickMs);
  }

  evidence(): ProbeEvidence {
    const survey = this.#survey;
    const process = this.process;
    const engine = this.engine;
    return {
      engine: engine === 'sglang' || engine === 'vllm' ? engine : undefined,
      readings: this.#readings,
      health: this.#health?.health,
      log: this.seenLog,
      logNow: survey === undefined || survey.now === 0 ? undefined : survey.now + survey.zoneMs,
      process: process === undefined ? undefined : this.#seenProcess(process),
      kernel: survey === undefined ? [] : this.#kernel(survey),
      groupOomKills: process?.memory.oomKills,
      orphans: survey === undefined ? [] : orphanRanks(survey.table).map(({ pid }) => pid),
      portHeldBy: survey === undefined ? '' : this.#portHeldBy(survey),
      ownChecks: this.#ownChecks,
      isAskedToEnd: false,
      checkRemedy,
    };
  }

  get seenLog(): ProbeEvidence['log'] {
    if (this.log === undefined) return undefined;
    const { path, bytes, read } = this.log;
    const modifiedAt = this.#surveyedLog?.modifiedAt ?? 0;
    const quietMs = modifiedAt === 0 || this.#survey === undefined ? undefined : Math.max(0, this.#survey.now - modifiedAt);
    return { path, bytes, read, quietMs };
  }

  #seenProcess({ pid, command, ageMs, container }: ProbedProcess): SeenProcess {
    return { pid, command, ageMs, container, uninterruptible: this.#family?.uninterruptible ?? [] };
  }

  #kernel({ kernel }: Survey): KernelSign[] {
    const ours = new Set([this.#pid, ...(this.#family?.members.map(({ pid }) => pid) ?? [])].filter((pid) => pid > 0));
    return kernel.map(({ kind, text, pids }) => ({ kind, text, isOurs: pids.some((pid) => ours.has(pid)) }));
  }

  /** Another engine that listens where this one should. */
  #portHeldBy({ listeners, engines, details }: Survey): string {
    const port = this.#port;
    const inodes = port === 0 ? [] : listeningInodes(listeners, port);
    const other = engines.find(({ pid }) => pid !== this.#pid && inodes.some((inode) => details.get(pid)?.sockets.has(inode)));
    return other === undefined || this.#pid === 0 ? '' : `pid ${other.pid}`;
  }

  async close(): Promise<void> {
    await Promise.all([this.#client?.close(), this.#reach?.close()]);
  }
}

const NOBODY: ProcessSigns = {
  ...{ presence: 'gone', exitStatus: undefined, residentBytes: undefined, readBytes: undefined, gpuUsedMiB: undefined },
  ...{ compilers: 0, children: 0 },
};

/** Of a process that is gone: that of the container that it was in, where that is all there is. */
function groupAround({ ownMemory }: Survey): MemoryGroup {
  const isOne = ownMemory.container !== '' || ownMemory.limitBytes !== undefined;
  return isOne ? ownMemory : { container: '', limitBytes: undefined, usedBytes: undefined, oomKills: undefined };
}

/** Frames are named by letters and digits. */
export function statusNameOf({ name }: Subject): string {
  return `s${Buffer.from(name).toString('hex')}`;
}
