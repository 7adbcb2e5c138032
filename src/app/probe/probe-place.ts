/**
 * One machine under a probe: a survey at the beginning, one at the end, and between them the servers' own answers. Ends when all
 * has been seen or the time is up, whatever hangs: ssh, nvidia-smi, a health check.
 */
import type { AerieError } from '../../base/errors.ts';
import type { Redact } from '../../base/redact.ts';
import type { Machine } from '../../machine/machine.ts';
import type { Survey } from '../../machine/survey/survey.ts';
import type { SurveyQuestion } from '../../machine/survey/survey-script.ts';
import { type SurveyResult, takeSurvey } from '../../machine/survey/take-survey.ts';
import { describeGpus } from './describe-machine.ts';
import type { ProbedMachine } from './report.ts';
import { ServerLogProbe } from './server-log-probe.ts';
import { ServerProbe } from './server-probe.ts';
import type { ProbeWorld } from './server-questions.ts';
import { type Subject, statusNameOf, UNKNOWN_SUBJECT } from './subject.ts';

/** What is late after this is told as late: the first answer is to be there within three seconds. */
const FIRST_WAIT_S = 1.6;
/** A machine that is far, and a connection that is new. */
const FIRST_TIMEOUT_MS = 12_000;
const LAST_WAIT_S = 2;
/** Between the two readings: SGLang counts each 40 steps, and a load moves each second. */
const APART_MS = 2_500;

export interface Place {
  readonly machine: Machine;
  readonly subjects: readonly Subject[];
  /** Engines that run there are looked for, and each is probed. */
  readonly isSearched: boolean;
  readonly headers: Subject['headers'];
  readonly redact: Redact;
}

export class PlaceProbe {
  readonly place: Place;
  readonly #world: ProbeWorld;
  readonly servers: ServerProbe[] = [];
  readonly #logs = new Map<ServerProbe, ServerLogProbe>();
  #result: SurveyResult | undefined;
  #last: Survey | undefined;
  /** What ssh says of a machine that is away; '' = it is not, or nothing was heard. */
  #awayBecause = '';

  constructor(place: Place, world: ProbeWorld) {
    this.place = place;
    this.#world = world;
    place.machine.onReachChange(({ isAway, because }) => {
      this.#awayBecause = isAway ? because : '';
    });
    for (const subject of place.subjects) this.#add(subject);
  }

  #add(subject: Subject): void {
    const { machine } = this.place;
    const server = new ServerProbe(subject, machine, this.#world);
    this.servers.push(server);
    this.#logs.set(server, new ServerLogProbe(server, machine, this.#world));
  }

  async run(): Promise<void> {
    // Docker is asked while the machine is surveyed: it may hang, and hold up nobody but its own containers.
    const begun = [...this.#logs].map(async ([server, log]) => {
      await log.askContainer();
      await server.begin();
    });
    this.#result = await this.#survey(this.#firstQuestion(), FIRST_TIMEOUT_MS);
    if (this.#result.kind === 'seen') await this.#takeFirst(this.#result.survey);
    else await Promise.all([...this.#logs.values()].map((log) => log.readMirror()));
    await this.#withinTime(Promise.all(begun));
    await this.#withinTime(Promise.all(this.servers.map((server) => this.#finish(server))));
  }

  async #takeFirst(survey: Survey): Promise<void> {
    if (this.place.isSearched) this.#addFound(survey);
    await this.#withinTime(Promise.all([...this.#logs].map(([server, log]) => this.#takeServer(server, log, survey))));
  }

  async #takeServer(server: ServerProbe, log: ServerLogProbe, survey: Survey): Promise<void> {
    if (server.subject.container === '') server.see(survey);
    await log.askContainer();
    server.see(survey);
    const asking = server.begin();
    await log.read(survey);
    server.see(survey); // its log may have told its container
    await Promise.all([asking, server.begin()]);
  }

  /** One in a container listens where docker publishes it, which its command line does not know. */
  #addFound({ engines, details, ownMemory }: Survey): void {
    const { headers, redact, machine } = this.place;
    for (const { pid, engine, port, address } of engines) {
      const around = details.get(pid)?.memory.container ?? '';
      const container = around.startsWith('docker-') && around !== ownMemory.container ? around.slice('docker-'.length) : '';
      const name = engines.length === 1 ? `${engine} on ${machine.name}` : `${engine}:${port} on ${machine.name}`;
      const subject = {
        ...UNKNOWN_SUBJECT,
        name,
        engine,
        port,
        pid,
        headers,
        redact,
        address: address === '127.0.0.1' ? '' : address,
      };
      this.#add(container === '' ? subject : { ...subject, container, port: 0, address: '' });
    }
  }

  /** The second reading: when health has answered and there is something to compare, or when the time is up. */
  async #finish(server: ServerProbe): Promise<void> {
    const { clock, signal } = this.#world;
    await server.read();
    if (this.#isOver(server)) return;
    await Promise.all([clock.sleep(APART_MS, signal), server.questions.settle()]);
    const last = await this.#lastSurvey();
    if (last !== undefined) server.see(last);
    const log = this.#logs.get(server);
    await Promise.all([log?.askAgain(), log?.readOn(last?.logs.get(String(this.servers.indexOf(server))))]);
    await server.read();
  }

  /** Nobody is there to be looked at twice. */
  #isOver(server: ServerProbe): boolean {
    const presence = server.process?.presence;
    const { health } = server.questions;
    const isClosed = health === undefined ? server.address === '' : health.health.kind === 'refused';
    return isClosed && (presence === undefined || presence === 'gone') && this.#result?.kind === 'seen';
  }

  #lastPending: Promise<Survey | undefined> | undefined;

  /** One for all servers of the machine; those that finish later than it take another. */
  #lastSurvey(): Promise<Survey | undefined> {
    this.#lastPending ??= this.#surveyAgain().finally(() => {
      this.#lastPending = undefined;
    });
    return this.#lastPending;
  }

  async #surveyAgain(): Promise<Survey | undefined> {
    if (this.#result?.kind !== 'seen') return undefined;
    const pids = this.servers.map(({ pid, container }) => pid || (container?.pid ?? 0)).filter((pid) => pid > 0);
    const logs = this.servers.flatMap((server, at) =>
      server.filePath === '' ? [] : [{ name: String(at), path: server.filePath, from: server.log?.offset ?? 0 }],
    );
    const { machine } = this.place;
    const result = await this.#survey(
      {
        ...{
          pids,
          logs,
          files: this.#statusFiles(),
          findsEngines: true,
          readsLogs: false,
          isWhole: true,
          waitSeconds: LAST_WAIT_S,
        },
        ...(machine.isHere ? { logs: logs.map(({ name, path }) => ({ name, path })) } : {}),
      },
      FIRST_TIMEOUT_MS,
    );
    if (result.kind === 'seen') this.#last = result.survey;
    return result.kind === 'seen' ? result.survey : undefined;
  }

  #firstQuestion(): Omit<SurveyQuestion, 'nonce'> {
    const { subjects, machine } = this.place;
    return {
      pids: subjects.map(({ pid }) => pid).filter((pid) => pid > 0),
      logs: subjects.flatMap(({ logPath }, at) => (logPath === '' ? [] : [{ name: String(at), path: logPath }])),
      files: this.#statusFiles(),
      ...{ findsEngines: true, readsLogs: !machine.isHere, isWhole: true, waitSeconds: FIRST_WAIT_S },
    };
  }

  #statusFiles(): SurveyQuestion['files'] {
    return this.place.subjects.flatMap((subject) =>
      subject.statusPath === '' ? [] : [{ name: statusNameOf(subject), path: subject.statusPath }],
    );
  }

  async #survey(question: Omit<SurveyQuestion, 'nonce'>, timeoutMs: number): Promise<SurveyResult> {
    const { host, clock, signal, endsAt } = this.#world;
    const left = Math.max(500, Math.min(timeoutMs, endsAt - clock.elapsed()));
    const taking = takeSurvey(this.place.machine, question, { random: host.random, timeoutMs: left, signal });
    // A machine that is away waits for its connection, longer than a probe lasts.
    const late = clock.sleep(left + 200, signal).then((): SurveyResult => {
      const because = this.#awayBecause === '' ? `it did not answer in ${Math.round(left / 1000)} s` : this.#awayBecause;
      return { kind: 'unseen', because, isAway: true };
    });
    taking.catch(() => undefined);
    return Promise.race([taking, late]);
  }

  async #withinTime(work: Promise<unknown>): Promise<void> {
    const { clock, endsAt, signal } = this.#world;
    await Promise.race([work, clock.sleep(Math.max(0, endsAt - clock.elapsed()), signal)]);
  }

  /** Why the machine lets nobody in. */
  get refusal(): AerieError | undefined {
    return this.#result?.kind === 'unseen' ? this.#result.refusal : undefined;
  }

  report(): ProbedMachine {
    const survey = this.#last ?? (this.#result?.kind === 'seen' ? this.#result.survey : undefined);
    const away = this.#result?.kind === 'unseen' ? this.#result : undefined;
    return {
      name: this.place.machine.name,
      gpus: survey === undefined ? [] : describeGpus(survey),
      kernel: survey?.kernel.slice(-6).map(({ text }) => text) ?? [],
      unseen: survey?.unseen ?? [],
      because: this.#result === undefined ? 'it has not answered' : (away?.because ?? ''),
      isAway: this.#result === undefined || away?.isAway === true,
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.close()));
  }
}
