/**
 * Watches a server that Aerie did not start, from the first look for it to the end of the run: reads its log on, looks at its process,
 * and asks its port what costs it nothing. `judgeLook` says what that means, as for a launch. Nothing is signalled, and nothing ended.
 *
 * Promises: while the way to it is away nothing is judged, and that time counts for nothing; a server that is well is asked for its
 * counters alone; no look sooner than those at a launch.
 * On failure: what cannot be seen now is not judged now.
 */
import { isOutOfReach } from '../../base/errors.ts';
import { describeProgress } from '../../diagnosis/live/describe-progress.ts';
import { judgeLook, keepLooks, type LookInput } from '../../diagnosis/live/judge-look.ts';
import { type LiveVerdict, type Look, logSigns, type ProcessSigns } from '../../diagnosis/live/look.ts';
import type { LoggedEngine } from '../../diagnosis/log-facts.ts';
import type { Machine, Reach } from '../../machine/machine.ts';
import { isOver, LOOK_EVERY_MS } from '../launch/launch-watch.ts';
import { GpuSigns } from '../launch/process-signs.ts';
import { type QuestionsOptions, WatchQuestions } from '../launch/watch-questions.ts';
import { AttachedLog } from './attached-log.ts';
import { type AttachedSubject, isSameSubject, lookAtSubject, reopenCutShort } from './attached-subject.ts';
import { needsHealth, type Step, stepFor, whyHeldBack } from './watch-steps.ts';

export interface AttachedWatchOptions extends QuestionsOptions {
  readonly engine: LoggedEngine;
  readonly machine: Machine;
  readonly reach: Reach;
  /** Requests of this worker: those that it has not answered, and those that it has. */
  readonly asked: () => { readonly inFlight: number; readonly answered: number };
  /** What can be found of it before it answers, and when it is over; undefined: nothing. */
  readonly find: () => Promise<AttachedSubject | undefined>;
  /** Differs where another process answers; '' = that is not to be told. */
  readonly whoAnswers: () => Promise<string>;
  readonly onLook: (verdict: LiveVerdict, progress: string) => void;
  /** What answers has to be asked again what it is. */
  readonly onLookAnew: () => void;
  /** What is under way will never be answered. */
  readonly onCut: () => void;
  readonly checkRemedy?: LookInput['checkRemedy'];
}

/** Between two searches for what is not there yet. */
const FIND_EVERY_LOOKS = 5;

export class AttachedWatch {
  readonly #options: AttachedWatchOptions;
  readonly #ended = new AbortController();
  readonly #gpus: GpuSigns;
  readonly #unhear: () => void;
  #questions: WatchQuestions;
  #subject: AttachedSubject | undefined;
  #who = '';
  #log: AttachedLog;
  #looks: readonly Look[] = [];
  #verdict: LiveVerdict | undefined;
  /** What followed from it; once for each verdict that says so. */
  #step: Step = 'none';
  #wasWell = false;
  /** It answers, and has no counters: it is not asked again. */
  #isWithoutCounters = false;
  #turns = 0;
  #lives = 0;
  /** By the clock of the looks, which stands while the way is away. */
  #atMs = 0;
  #lookedAtMs: number | undefined;
  #changes = 0;

  constructor(options: AttachedWatchOptions) {
    this.#options = options;
    this.#gpus = new GpuSigns(options.machine);
    this.#questions = new WatchQuestions(options);
    this.#log = new AttachedLog(undefined, options.engine, options.clock);
    this.#unhear = options.machine.onReachChange(() => {
      this.#changes += 1;
    });
  }

  /** Starts of the server that its log showed while it was watched: each may be another server. */
  get lives(): number {
    return this.#lives;
  }

  get whyHeldBack(): string {
    return whyHeldBack(this.#verdict);
  }

  /** Who answers now said that it is ready, was looked at, and is watched from here on. */
  adopt(subject: AttachedSubject, who: string): void {
    this.#who = who;
    this.#take(subject);
    this.#wasWell = true;
    this.#keep({ process: undefined, health: { kind: 'http', status: 200, afterMs: 0 }, counters: undefined });
  }

  /** Looks until it is closed. */
  async run(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#ended.signal.aborted) {
      await this.#lookOnce();
      const isStarting = this.#verdict?.state === 'initializing';
      await clock.sleep(isStarting ? LOOK_EVERY_MS.starting : LOOK_EVERY_MS.working, this.#ended.signal);
    }
  }

  close(): void {
    this.#ended.abort();
    this.#questions.close();
    this.#unhear();
  }

  async #lookOnce(): Promise<void> {
    const { reach } = this.#options;
    const before = this.#outages();
    if (reach.isOpen()) {
      try {
        const signs = await this.#gather();
        if (this.#ended.signal.aborted || signs === undefined) return;
        if (reach.isOpen() && this.#outages() === before) return this.#judge(signs.process);
      } catch (thrown) {
        if (!isOutOfReach(thrown)) throw thrown;
      }
    }
    this.#leaveOut();
  }

  /** What was met since the last look may be the way's doing. */
  #leaveOut(): void {
    this.#lookedAtMs = undefined;
    this.#questions.close();
    this.#questions = new WatchQuestions(this.#options);
  }

  #outages(): number {
    return this.#changes + this.#options.reach.drops();
  }

  /** undefined: another server answers, which is looked at first. */
  async #gather(): Promise<{ readonly process: ProcessSigns | undefined } | undefined> {
    this.#turns += 1;
    await this.#findAnew();
    const subject = this.#subject;
    const process = await this.#lookAtProcess(subject);
    await this.#ask(this.#needsHealth() || isGone(process));
    if (isGone(process) && (await this.#isAnother())) {
      this.#options.onLookAnew();
      return undefined;
    }
    // After the process: what it wrote before its end is then there.
    const isAnew = subject === this.#subject && (await this.#log.readOn(isGone(process)));
    // What was seen of one is nothing of another, which was adopted meanwhile.
    if (subject !== this.#subject) return undefined;
    if (!isAnew || subject === undefined) return { process };
    this.#beginAnew(subject, process);
    return undefined;
  }

  #judge(process: ProcessSigns | undefined): void {
    const { clock, onLook, checkRemedy, onCut, onLookAnew } = this.#options;
    const nowMs = clock.elapsed();
    this.#atMs += this.#lookedAtMs === undefined ? 1 : nowMs - this.#lookedAtMs;
    this.#lookedAtMs = nowMs;
    const { account } = this.#log;
    const health = this.#questions.healthFor(account.ready !== undefined);
    if (health?.kind === 'http' && health.status < 500) this.#wasWell = true;
    // Where only its port can be seen, what that says is all there is to say until it has been well.
    const isUnseen = process === undefined && (account.lines === 0 || health === undefined);
    if (isUnseen && !this.#wasWell) return;
    this.#keep({ process, health, counters: this.#questions.counters });
    const verdict = judgeLook({ account, looks: this.#looks, ...(checkRemedy === undefined ? {} : { checkRemedy }) });
    this.#verdict = verdict;
    onLook(verdict, describeProgress(account, this.#looks, this.#gpus.totalMiB));
    const step = stepFor(verdict, isGone(process));
    if (step === this.#step) return;
    this.#step = step;
    if (step === 'cut') onCut();
    if (step === 'look-anew') onLookAnew();
  }

  #keep(seen: Pick<Look, 'process' | 'health' | 'counters'>): void {
    const look = { ...seen, atMs: this.#atMs, ...logSigns(this.#log.account), asked: this.#options.asked() };
    this.#looks = keepLooks(this.#looks, look);
  }

  #needsHealth(): boolean {
    const { countersReply, countersWaitMs } = this.#questions;
    return needsHealth({
      ...{ wasWell: this.#wasWell && this.#questions.isListening, verdict: this.#verdict },
      ...{ isRefused: countersReply === 'refused', countersWaitMs },
    });
  }

  async #ask(health: boolean): Promise<void> {
    await this.#questions.ask({ health, counters: !this.#isWithoutCounters });
    this.#isWithoutCounters ||= this.#questions.countersReply === 'without';
  }

  async #lookAtProcess(subject: AttachedSubject | undefined): Promise<ProcessSigns | undefined> {
    if (subject === undefined) return undefined;
    if (this.#verdict?.state === 'initializing') await this.#gpus.look();
    return await lookAtSubject(this.#options.machine, subject, this.#gpus.usedMiB);
  }

  async #isAnother(): Promise<boolean> {
    const who = await this.#options.whoAnswers();
    return who !== '' && this.#who !== '' && who !== this.#who;
  }

  /** What is not there is looked for at times; what is over may have been started again, with another log. */
  async #findAnew(): Promise<void> {
    const isOverNow = this.#verdict !== undefined && isOver(this.#verdict);
    if ((this.#subject !== undefined && !isOverNow) || this.#turns % FIND_EVERY_LOOKS !== 1) return;
    const before = this.#subject;
    const found = await this.#options.find();
    const isNew = found !== undefined && (before === undefined || !isSameSubject(found, before));
    const next = isNew ? found : await reopenCutShort(this.#options.machine, before, this.#options.engine);
    if (next === undefined || before !== this.#subject) return;
    if (before !== undefined) this.#lives += 1;
    this.#take(next);
  }

  /** Another start in the same log: nothing of before counts, and what is up then has to be asked what it is. */
  #beginAnew(subject: AttachedSubject, process: ProcessSigns | undefined): void {
    this.#lives += 1;
    const { identity } = subject;
    const lives = process?.presence === 'running' ? identity : undefined;
    this.#subject = { ...subject, identity: lives };
    this.#forget();
    this.#options.onLookAnew();
  }

  #take(subject: AttachedSubject): void {
    this.#subject = subject;
    this.#log = new AttachedLog(subject.source, this.#options.engine, this.#options.clock);
    this.#isWithoutCounters = false;
    this.#forget();
  }

  #forget(): void {
    this.#looks = [];
    this.#wasWell = false;
    this.#verdict = undefined;
    this.#step = 'none';
    this.#leaveOut();
  }
}

function isGone(process: ProcessSigns | undefined): boolean {
  return process?.presence === 'gone' || process?.presence === 'zombie';
}
