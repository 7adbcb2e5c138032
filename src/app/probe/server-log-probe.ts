/**
 * The log of one server under a probe, wherever it stands: a file that is named or that its process writes, docker, the journal, the file of
 * an earlier launch, what was kept of it here. Finding it is that of an attachment (`server/attach`).
 * Promises: bounded in bytes and in time, whatever hangs; what was not read is said with what somebody who may would type.
 */
import { AerieError } from '../../base/errors.ts';
import { listeningInodes } from '../../machine/listeners.ts';
import { readSlice } from '../../machine/local/read-slice.ts';
import type { Machine } from '../../machine/machine.ts';
import type { Survey, SurveyedLog } from '../../machine/survey/survey.ts';
import { takeSurvey } from '../../machine/survey/take-survey.ts';
import { findServerLog } from '../../server/attach/find-log.ts';
import { noneOf } from '../../server/attach/judge-outputs.ts';
import { type KeptLog, type LogEnds, readLogEnds } from '../../server/attach/log-ends.ts';
import { type LogPlace, nameOfLog, type ServerLog } from '../../server/attach/server-log.ts';
import { findMirror } from '../../server/launch/mirror-place.ts';
import { launchPaths } from '../servers/launch-paths.ts';
import { boundedMachine } from './bounded-machine.ts';
import { sayUnread } from './describe-machine.ts';
import { LogReading } from './log-reading.ts';
import type { ServerProbe } from './server-probe.ts';
import type { ProbeWorld } from './server-questions.ts';

/** A log of here is read so long; 126 MB a second. */
const LOG_MS = 9_000;
/** Docker's client answers in a tenth of a second, its daemon under load in seconds. */
const FIND_MS = 7_000;
/** All of what docker or the journal keeps passes by in this time, or its end alone is read. */
const KEPT_WAIT_S = 5;
const KEPT_MS = 9_000;

export class ServerLogProbe {
  readonly #server: ServerProbe;
  readonly #machine: Machine;
  readonly #world: ProbeWorld;
  /** What docker says of the container. */
  #container: Promise<ServerLog> | undefined;
  #kept: LogEnds | undefined;

  constructor(server: ServerProbe, machine: Machine, world: ProbeWorld) {
    this.#server = server;
    this.#machine = machine;
    this.#world = world;
  }

  /** Asks docker for the server's container, where it is known to be in one: by then it is known where the server listens. */
  async askContainer(): Promise<void> {
    const { container } = this.#server.subject;
    if (container === '') return;
    this.#container ??= this.#find({ container });
    this.#see(await this.#container);
  }

  /** One that has ended meanwhile: docker knows how. */
  async askAgain(): Promise<void> {
    const { container, process } = this.#server;
    if (container === undefined || process?.presence !== 'gone' || process.end !== '') return;
    this.#see(await this.#find({ container: container.id }));
  }

  #see({ container }: ServerLog): void {
    if (container !== undefined) this.#server.seeContainer(container);
  }

  async read(survey: Survey): Promise<void> {
    const { logPath, surveyedLog } = this.#server;
    if (logPath !== '') {
      await this.#readFile(survey, logPath, surveyedLog);
      return;
    }
    const log = await (this.#container ?? this.#lookFor(survey));
    if (log !== undefined) await this.#readFound(survey, log);
  }

  /** Where its process writes, who listens at its port, or where a launch that is over has written; undefined: there is nobody to ask. */
  async #lookFor({ table, listeners }: Survey): Promise<ServerLog | undefined> {
    const { pid, subject } = this.#server;
    if (subject.isOver) return await this.#ofEarlierLaunch();
    const place = table.has(pid) ? { pid } : isListening(listeners, subject.port) ? { port: subject.port } : undefined;
    if (place === undefined) return undefined;
    const found = await this.#find(place);
    this.#see(found);
    return found;
  }

  async #ofEarlierLaunch(): Promise<ServerLog | undefined> {
    const { known } = this.#server.subject;
    if (known === undefined) return undefined;
    const { logPath } = await launchPaths(known.run, known.server, this.#machine);
    return await this.#find({ path: logPath });
  }

  async #find(place: LogPlace): Promise<ServerLog> {
    const asked = boundedMachine(this.#machine, this.#world, FIND_MS);
    try {
      return await findServerLog(asked, place, this.#server.engine === 'vllm' ? 'stdout' : 'stderr');
    } catch (thrown) {
      if (!(thrown instanceof AerieError)) throw thrown;
      const { name } = this.#machine;
      return 'container' in place
        ? noneOf(`container ${place.container} of ${name} cannot be looked at: ${thrown.message}`, `Try  docker ps  on ${name}.`)
        : noneOf(`where it writes on ${name} was not told: ${thrown.message}`, thrown.detail.remedy);
    }
  }

  async #readFound(survey: Survey, log: ServerLog): Promise<void> {
    if (log.kind === 'none') await this.#without(`its log: ${log.because}. ${log.remedy}`.trim());
    else if (log.kind === 'file') await this.#readFile(survey, log.readPath, undefined, log.path);
    else await this.#readKept(survey, log);
  }

  async #readFile(survey: Survey, path: string, surveyed: SurveyedLog | undefined, name?: string): Promise<void> {
    const found = surveyed ?? (this.#machine.isHere ? undefined : await this.#surveyLog(path));
    const reading = this.#reading(survey, name ?? found?.realPath ?? path);
    if (!this.#machine.isHere) {
      if (found?.kind !== 'read') return await this.#without(sayUnread(found?.kind ?? 'late', path));
      reading.takeSurveyed(found);
      this.#server.take(reading, path);
      return;
    }
    const { clock, endsAt } = this.#world;
    const until = Math.min(clock.elapsed() + LOG_MS, endsAt);
    this.#server.take(reading, path);
    if (await reading.readHere(this.#machine, path, () => clock.elapsed() > until)) return;
    this.#server.take(undefined, path);
    this.#unseen(sayUnread(found?.kind === 'read' ? 'not-permitted' : (found?.kind ?? 'absent'), path));
  }

  /** A file that was found after the machine was surveyed. */
  async #surveyLog(path: string): Promise<SurveyedLog | undefined> {
    const { host, signal } = this.#world;
    const question = {
      ...{ pids: [], files: [], findsEngines: false, readsLogs: true, isWhole: false, waitSeconds: 3 },
      logs: [{ name: 'found', path }],
    };
    const machine = boundedMachine(this.#machine, this.#world, FIND_MS);
    const taken = await takeSurvey(machine, question, { random: host.random, timeoutMs: FIND_MS, signal });
    return taken.kind === 'seen' ? taken.survey.logs.get('found') : undefined;
  }

  async #readKept(survey: Survey, log: KeptLog): Promise<void> {
    const name = nameOfLog(log);
    const machine = boundedMachine(this.#machine, this.#world, KEPT_MS);
    const nonce = `k${this.#world.host.random().toString(36).slice(2)}`;
    const ends = await readLogEnds(machine, log, { nonce, waitSeconds: KEPT_WAIT_S }).catch(sayLate);
    if (typeof ends === 'string') return this.#unseen(`its log: ${name}: ${ends}`);
    if (ends.because !== '') return this.#unseen(`its log: ${name}: ${ends.because}`);
    const reading = this.#reading(survey, name);
    reading.takeEnds(ends);
    this.#kept = ends;
    this.#server.take(reading, '');
  }

  #reading({ now, zoneMs }: Survey, name: string): LogReading {
    const { engine } = this.#server;
    return new LogReading(name, { now: now + zoneMs, ...(engine === 'sglang' || engine === 'vllm' ? { engine } : {}) });
  }

  /** The second reading. `grown`: of a file elsewhere, by the last survey. */
  async readOn(grown: SurveyedLog | undefined): Promise<void> {
    const { log, filePath } = this.#server;
    if (log === undefined) return;
    if (this.#kept !== undefined) {
      const machine = boundedMachine(this.#machine, this.#world, FIND_MS);
      const piece = await this.#kept.readOn(machine).catch(sayLate);
      if (typeof piece !== 'string') log.takeMore(piece.bytes);
    } else if (this.#machine.isHere) await log.readHere(this.#machine, filePath, () => true);
    else if (grown !== undefined) log.takeGrown(grown);
  }

  async #without(sentence: string): Promise<void> {
    this.#unseen(sentence);
    if (this.#server.subject.isOver) await this.readMirror();
  }

  /** Of a machine that is away, or a launch whose log is not there any more: what Aerie had read of the log by then. */
  async readMirror(): Promise<void> {
    const { known, engine } = this.#server.subject;
    const launch = known?.launch?.n ?? known?.launches ?? 0;
    if (this.#machine.isHere || known === undefined || launch === 0) return;
    const path = await findMirror(known.run.serverFolder, known.server.name, launch);
    if (path === undefined) return;
    const reading = new LogReading(path, engine === 'sglang' || engine === 'vllm' ? { engine } : {});
    if (!(await reading.readHere({ readFile: readSlice }, path, () => false))) return;
    this.#server.take(reading, ''); // nothing of it is read on
    this.#unseen(`its log on ${this.#machine.name}: this is what was read of it before, and kept here`);
  }

  #unseen(sentence: string): void {
    this.#server.unseen.push(sentence);
  }
}

function isListening(listeners: string, port: number): boolean {
  return port > 0 && listeningInodes(listeners, port).length > 0;
}

function sayLate(thrown: unknown): string {
  if (thrown instanceof AerieError) return thrown.message;
  throw thrown;
}
