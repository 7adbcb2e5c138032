/**
 * One server under a probe: its questions over HTTP, what surveys saw of its process and its log, and both readings put together.
 * What moves it: `begin` starts the questions, `see` takes a survey, `read` closes a reading. It judges nothing.
 */
import type { ProcessSigns } from '../../diagnosis/live/look.ts';
import type { ProbeEvidence, Reading } from '../../diagnosis/probe/evidence.ts';
import { LogReader } from '../../diagnosis/read-log.ts';
import type { EngineName } from '../../engine/dialect.ts';
import type { Machine, ProcessLook } from '../../machine/machine.ts';
import { familyOf, orphanRanks } from '../../machine/survey/processes.ts';
import type { Survey, SurveyedLog } from '../../machine/survey/survey.ts';
import { type ContainerFacts, engineOfContainer } from '../../server/attach/container-facts.ts';
import { machineOfLaunch } from '../../server/launch/contained-launch.ts';
import { addressOfLaunch } from '../../server/launch/launch-address.ts';
import { checkRemedy } from '../check-remedy.ts';
import type { LogReading } from './log-reading.ts';
import type { ProbedProcess } from './report.ts';
import {
  holderOfPort,
  isNobody,
  kernelSigns,
  NOBODY,
  pidInContainer,
  processOf,
  signsOf,
  type Wanted,
  withInside,
} from './seen-process.ts';
import { type Address, type ProbeWorld, ServerQuestions } from './server-questions.ts';
import { type Subject, statusNameOf } from './subject.ts';
import { hasAddress, listensAs, listensIn } from './where-it-listens.ts';

/** docker and Slurm answer in well under a second, or not in time. */
const INSIDE_MS = 5_000;

export class ServerProbe {
  readonly subject: Subject;
  readonly questions: ServerQuestions;
  readonly #clock: ProbeWorld['clock'];
  readonly #readings: Reading[] = [];
  /** What could not be seen, and why. */
  readonly unseen: string[] = [];
  readonly #machine: Machine;
  #at: Address;
  #placing: Promise<boolean> | undefined;
  /** What docker or Slurm said last of a launch by a client of theirs. */
  #inside: ProcessLook | undefined;
  #pid: number;
  #survey: Survey | undefined;
  #surveyedLog: SurveyedLog | undefined;
  #container: ContainerFacts | undefined;
  log: LogReading | undefined;
  /** Where its log is read on; '' = a program shows it. */
  filePath = '';

  constructor(subject: Subject, machine: Machine, world: ProbeWorld) {
    this.subject = subject;
    this.questions = new ServerQuestions(subject, machine, world);
    this.#clock = world.clock;
    this.#machine = machine;
    this.#pid = subject.pid;
    this.#at = { url: subject.url, port: subject.port, host: subject.address };
  }

  get pid(): number {
    return this.#pid;
  }

  get survey(): Survey | undefined {
    return this.#survey;
  }

  get surveyedLog(): SurveyedLog | undefined {
    return this.#surveyedLog;
  }

  get isUnread(): boolean {
    return this.#readings.length === 0;
  }

  /** As the run file, the command line, the answers or the log tell. */
  get engine(): EngineName | undefined {
    const told = this.subject.engine ?? this.questions.facts?.engine ?? this.log?.account().facts.engine;
    return told ?? (this.#container === undefined ? undefined : engineOfContainer(this.#container));
  }

  /** As docker shows it. */
  get container(): ContainerFacts | undefined {
    return this.#container;
  }

  get address(): string {
    const { url, port, host } = this.#at;
    if (url !== '') return url;
    return port === 0 ? '' : `http://${host === '' ? '127.0.0.1' : host}:${port}`;
  }

  /** Where its log can be read on its machine; '' = nowhere that is known. */
  get logPath(): string {
    if (this.subject.logPath !== '') return this.subject.logPath;
    return this.#surveyedLog?.kind === 'read' && this.#pid !== 0 ? `/proc/${this.#pid}/fd/1` : '';
  }

  /** What was read of its log, and where. */
  take(log: LogReading | undefined, path: string): void {
    this.log = log;
    this.filePath = path;
  }

  /** Docker tells where it listens. */
  seeContainer(container: ContainerFacts): void {
    this.#container = container;
    if (!hasAddress(this.#at)) this.#at = listensIn(container, undefined, this.engine) ?? this.#at;
  }

  async begin(): Promise<void> {
    this.#placing ??= this.#place();
    if (await this.#placing) await this.questions.begin(this.#at);
  }

  /** A job of Slurm may be on another node, or on none yet: then nobody is asked. */
  async #place(): Promise<boolean> {
    const launch = this.subject.known?.launch;
    if (launch === undefined) return true;
    const at = await addressOfLaunch(this.#machine, launch).catch((thrown: unknown) => String(thrown));
    if (typeof at !== 'string' && at.kind === 'listens') {
      this.#at = { ...this.#at, host: at.address ?? '' };
      return true;
    }
    this.unseen.push(`health: ${typeof at === 'string' ? at : at.says}`);
    return false;
  }

  /** A survey of its machine: which process it is, where it listens, and what its log is. */
  see(survey: Survey): void {
    this.#survey = survey;
    if (this.#pid === 0 || this.#isClient) this.#pid = this.#findPid(survey) || this.subject.pid;
    const engine = survey.engines.find(({ pid }) => pid === this.#pid);
    const inContainer = this.#container === undefined ? undefined : listensIn(this.#container, engine, this.engine);
    if (!hasAddress(this.#at)) this.#at = inContainer ?? (engine === undefined ? this.#at : listensAs(engine));
    const named = [...survey.logs.values()].find(({ path }) => path === this.subject.logPath);
    this.#surveyedLog = named ?? survey.details.get(this.#pid)?.log ?? this.#surveyedLog;
  }

  /** The process that is known is docker's or Slurm's client, and the engine is another one. */
  get #isClient(): boolean {
    return this.subject.known?.launch?.contained !== undefined && this.#pid === this.subject.pid;
  }

  /** By its port, or by the file that its stdout is. */
  #findPid(survey: Survey): number {
    const { engines, details, logs } = survey;
    const { port, url, logPath } = this.subject;
    if (this.#container !== undefined) return pidInContainer(survey, this.#container);
    const isHere = this.#at.host === '';
    const byPort = port === 0 || !isHere ? undefined : engines.find((one) => one.port === port);
    if (byPort !== undefined) return byPort.pid;
    const file = [...logs.values()].find(({ path }) => path === logPath)?.file ?? '';
    const isAddressed = url !== '' && port === 0;
    const byLog = file === '' || isAddressed ? undefined : engines.find(({ pid }) => details.get(pid)?.log?.file === file);
    return byLog?.pid ?? 0;
  }

  /** Closes a reading: what is known now. */
  async read(): Promise<void> {
    if (this.#readings.length > 0) await this.questions.countAgain(this.engine);
    this.#inside = (await this.#lookInside()) ?? this.#inside;
    const account = (this.log ?? new LogReader()).account();
    const { counters } = this.questions;
    this.#readings.push({ atMs: this.#clock.elapsed(), account, process: this.#signs(), counters });
  }

  async #lookInside(): Promise<ProcessLook | undefined> {
    const launch = this.subject.known?.launch;
    if (launch?.identity === undefined || launch.contained === undefined) return undefined;
    const enough = new AbortController();
    const looking = machineOfLaunch(this.#machine, launch).look(launch.identity, launch);
    const late = this.#clock.sleep(INSIDE_MS, enough.signal).then(() => undefined);
    return await Promise.race([looking.catch(() => undefined), late]).finally(() => enough.abort());
  }

  #wanted({ files }: Survey): Wanted {
    const text = files.get(statusNameOf(this.subject))?.trim() ?? '';
    const exitStatus = /^\d+$/.test(text) ? Number(text) : undefined;
    const { identity, pid } = this.subject;
    const container = this.#container;
    if (pid === this.#pid) return { pid, identity, exitStatus, container };
    return { pid: this.#pid, identity: undefined, exitStatus: undefined, container };
  }

  #signs(): ProcessSigns | undefined {
    const survey = this.#survey;
    if (survey === undefined) return undefined;
    const signs = withInside(signsOf(survey, this.#wanted(survey)), this.#inside, this.#isClient);
    return signs ?? (this.#pid === 0 && this.#isNobody(survey) ? NOBODY : undefined);
  }

  #isNobody({ seesAll }: Survey): boolean {
    const account = this.log?.account();
    const isItsMachine = this.#at.url === '' || this.#at.port !== 0;
    const health = this.questions.health?.health.kind;
    if (account === undefined || account.recognised === 0 || !isItsMachine) return false;
    return isNobody({ seesAll, health, isPortTold: this.subject.port !== 0, wasReady: account.ready !== undefined });
  }

  get process(): ProbedProcess | undefined {
    const found = this.#survey === undefined ? undefined : processOf(this.#survey, this.#wanted(this.#survey));
    if (found === undefined || this.#inside === undefined || !this.#isClient) return found;
    return { ...found, presence: this.#inside.main, exitStatus: this.#inside.exitStatus, end: this.#inside.end?.says ?? '' };
  }

  get seenLog(): ProbeEvidence['log'] {
    if (this.log === undefined) return undefined;
    const { path, bytes, read } = this.log;
    const modifiedAt = this.log.writtenAt || (this.filePath === '' ? 0 : (this.#surveyedLog?.modifiedAt ?? 0));
    const quietMs = modifiedAt === 0 || this.#survey === undefined ? undefined : Math.max(0, this.#survey.now - modifiedAt);
    return { path, bytes, read, quietMs };
  }

  evidence(): ProbeEvidence {
    const { process, engine } = this;
    const survey = this.#survey;
    return {
      engine: engine === 'sglang' || engine === 'vllm' ? engine : undefined,
      readings: this.#readings,
      health: this.questions.health?.health,
      isAccountTold: this.questions.facts?.facts !== undefined,
      schedulerSilentMs: this.questions.facts?.schedulerSilentMs ?? 0,
      log: this.seenLog,
      process:
        process === undefined || survey === undefined ? undefined : { ...process, uninterruptible: stuckOf(survey, this.#pid) },
      groupOomKills: process?.memory.oomKills,
      ...(survey === undefined ? UNSURVEYED : this.#around(survey)),
      ...{ ownChecks: this.questions.ownChecks, isAskedToEnd: false, checkRemedy },
    };
  }

  #around(survey: Survey): typeof UNSURVEYED {
    return {
      logNow: survey.now === 0 ? undefined : survey.now + survey.zoneMs,
      kernel: kernelSigns(survey, this.#pid),
      orphans: orphanRanks(survey.table).map(({ pid }) => pid),
      // A docker that is another machine's, or a client whose engine is not seen: whoever listens may well be it.
      portHeldBy: this.#at.host === '' && !this.#isClient ? holderOfPort(survey, this.#at.port, this.#pid) : '',
    };
  }

  close(): Promise<void> {
    return this.questions.close();
  }
}

const UNSURVEYED: Pick<ProbeEvidence, 'logNow' | 'kernel' | 'orphans' | 'portHeldBy'> = {
  ...{ logNow: undefined, kernel: [], orphans: [], portHeldBy: '' },
};

function stuckOf({ table }: Survey, pid: number): readonly number[] {
  return familyOf(table, pid).uninterruptible;
}
