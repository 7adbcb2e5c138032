/**
 * Lines with an anchor → an account of what the log shows. Pure; memory does not grow with the log.
 * Promises: a later start of the server in the same log begins the account anew; a copy goes its own way.
 */
import type { LogEvent } from '../engine/log-event.ts';
import type { Account, Sighting } from './account.ts';
import { beginsRecord, brokenParts, partsBelow, splitRecords } from './join-wrapped.ts';
import { richness, spansNodes, supposeEngine } from './line-hints.ts';
import { LogFactsReader, type LoggedEngine } from './log-facts.ts';
import { SignReader } from './read-signs.ts';
import type { FoundLine, Rest } from './scan-lines.ts';
import { matchSign } from './sign.ts';
import { FindingTrack } from './track-findings.ts';
import { PhaseTrack } from './track-phase.ts';
import { TimeTrack } from './track-time.ts';
import { WorkTrack } from './track-work.ts';
import type { Phase } from './verdict.ts';
import { type Watched, watch } from './watch.ts';

/** Readings and answers read in full at the beginning of a log, every how many after that, and how many last ones. */
const ROUTINE_READ = 4000;
const ROUTINE_EVERY = 64;
const SKIPPED_KEPT = 64;
const MET_ENOUGH = 20_000;

export interface ReadOptions {
  readonly now?: number;
  readonly engine?: LoggedEngine;
}

/** Lines and counts that are kept as they are. */
type Plain =
  | 'recognised'
  | 'notices'
  | 'noticesAtWork'
  | 'lastProgress'
  | 'graphs'
  | 'isMultiNode'
  | 'communicators'
  | 'nccl'
  | 'shutdown'
  | 'hasLoaded'
  | 'openTraceback'
  | 'harmless'
  | 'startsBefore';
type Seen = { -readonly [Key in Exclude<Plain, 'notices' | 'harmless'>]: Account[Key] } & {
  notices: Sighting[];
  harmless: Sighting[];
  /** Of lines that probes cause. */
  probeBytes: number;
};

export class AccountTrack {
  readonly #options: ReadOptions;
  readonly #watch = watch();
  #met: number[] = [];
  #figures: LogFactsReader;
  #phase = new PhaseTrack();
  #work = new WorkTrack();
  #findings = new FindingTrack();
  #clock: TimeTrack;
  #signs = new SignReader();
  #seen: Seen = {
    ...{ lastProgress: undefined, graphs: undefined, communicators: undefined, nccl: undefined, shutdown: undefined },
    ...{ openTraceback: undefined, isMultiNode: false, hasLoaded: false, notices: [], noticesAtWork: 0, harmless: [] },
    ...{ recognised: 0, startsBefore: 0, probeBytes: 0 },
  };
  #routineSeen = 0;
  /** The last routine lines that were passed over. */
  #skipped: { line: number; text: string }[] = [];

  constructor(options: ReadOptions = {}) {
    this.#options = options;
    this.#clock = new TimeTrack(options.now);
    this.#figures = new LogFactsReader(options.engine);
  }

  copy(): AccountTrack {
    const copy = new AccountTrack(this.#options);
    copy.#met = [...this.#met];
    copy.#figures = this.#figures.copy();
    copy.#phase = this.#phase.copy();
    copy.#work = this.#work.copy();
    copy.#findings = this.#findings.copy();
    copy.#clock = this.#clock.copy();
    copy.#signs = this.#signs.copy();
    copy.#seen = { ...this.#seen, notices: [...this.#seen.notices], harmless: [...this.#seen.harmless] };
    copy.#routineSeen = this.#routineSeen;
    copy.#skipped = [...this.#skipped];
    return copy;
  }

  /** The account as if the log ended here. Nothing can be taken afterwards: it is asked of a copy. */
  finish({ lines, bytes, tail, found }: Rest): Account {
    for (const one of found) this.take(one);
    this.#readSkipped();
    const { phase, began, hasEnded, progress, secondsEach, lastBar, compiling, ready } = this.#phase;
    const { probeBytes, ...seen } = this.#seen;
    return {
      ...seen,
      facts: { ...this.#figures.read(), lines },
      lines,
      ownBytes: bytes - probeBytes,
      tail,
      lastAt: this.#clock.lastOf(tail),
      ...{ phase, phaseBegan: began, phaseEnded: hasEnded, progress, secondsEach, lastBar, compiling, ready },
      work: this.#work.work,
      answers: this.#work.answers(),
      retractions: this.#work.retractions,
      found: this.#findings.found,
      deaths: this.#findings.deaths,
      lifeAfter: this.#findings.lifeAfter(),
    };
  }

  take(found: FoundLine): void {
    const anchors = this.#withoutProbes(found);
    // Most lines of a long log, without a step more than needed.
    if (anchors.length === 1 && this.#watch.isRoutine[anchors[0] as number] === true && this.#passOver(found)) return;
    const fresh = anchors.filter((anchor) => !this.#isTired(anchor));
    if (fresh.length === 0) return;
    if (fresh.every((anchor) => this.#watch.isRoutine[anchor] === true)) {
      if (anchors.length > 1 && this.#passOver(found)) return;
    } else if (this.#skipped.length > 0) this.#readSkipped();
    const watched = fresh.flatMap((anchor) => this.#watch.watched[anchor] ?? []);
    this.#seen.recognised += 1;
    const sighting = this.#clock.see(found);
    const kinds = new Set(watched.map(({ kind }) => kind));
    const engine = supposeEngine(sighting.text);
    if (engine !== undefined) this.#figures.suppose(engine);
    if (kinds.has('figures') || kinds.has('work')) this.#read(found, sighting);
    if (kinds.has('answer')) this.#answer({ ...sighting, text: partsBelow(found, sighting.text).join('') });
    this.#note(kinds, found, sighting);
    this.#mark(watched, sighting);
    this.#signs.read(watched, found, sighting, { phase: this.#phaseNow(), findings: this.#findings });
  }

  /** What a probe alone writes is counted and not read. */
  #withoutProbes({ anchors, bytes }: FoundLine): readonly number[] {
    const { watched } = this.#watch;
    const isProbe = (anchor: number) => watched[anchor]?.[0]?.kind === 'probe';
    if (!anchors.some(isProbe)) return anchors;
    this.#seen.probeBytes += bytes;
    return anchors.filter((anchor) => !isProbe(anchor) || watched[anchor]?.length !== 1);
  }

  /** Lines that are known by their anchor alone. */
  #note(kinds: ReadonlySet<Watched['kind']>, found: FoundLine, sighting: Sighting): void {
    if (kinds.has('nodes')) this.#seen.isMultiNode ||= spansNodes(brokenParts(found, sighting.text).join(''));
    if (kinds.has('nccl')) this.#seen.nccl = sighting;
    if (kinds.has('preempted')) this.#work.retract(sighting);
    if (kinds.has('shutdown')) this.#seen.shutdown ??= sighting;
    if (kinds.has('communicators')) this.#seen.communicators = sighting;
    if (kinds.has('notice')) this.#notice(sighting);
    if (kinds.has('compiling')) this.#phase.compile(sighting);
    if (kinds.has('compiled')) this.#phase.compile(undefined);
    if (kinds.has('harmless') && this.#seen.harmless.length < 20) this.#seen.harmless.push(sighting);
    if (kinds.has('traceback')) this.#seen.openTraceback ??= sighting;
  }

  #progress(sighting: Sighting): void {
    // Lines that were passed over are read after the sampled ones among them.
    if (sighting.line < (this.#seen.lastProgress?.line ?? 0)) return;
    this.#seen.lastProgress = sighting;
    this.#seen.notices = [];
    if (!this.#findings.found.length && !this.#findings.deaths.length) this.#seen.openTraceback = undefined;
  }

  #read(found: FoundLine, sighting: Sighting): void {
    for (const record of splitRecords(this.#whole(found, sighting.text))) {
      const event = this.#figures.look(record);
      if (event?.kind === 'decode' || event?.kind === 'prefill') this.#readWork(found.line, record);
      else if (this.#figures.add(record, found.line).event !== undefined && event !== undefined)
        this.#event(event, { ...sighting, text: record });
    }
  }

  /** The line, with what a terminal broke off it where more can be read from the whole. */
  #whole(found: FoundLine, text: string): string {
    const below = partsBelow(found, text);
    const all = beginsRecord(text) ? below : brokenParts(found, text);
    if (all.length === 1) return text;
    const candidates = [text, below.join(''), below.join(' '), all.join(''), all.join(' ')];
    const rich = candidates.map((one) => richness(this.#figures.look(one), one));
    return candidates[rich.indexOf(Math.max(...rich))] ?? text;
  }

  #event(event: LogEvent, sighting: Sighting): void {
    if (event.kind === 'weights-progress' || event.kind === 'graphs-progress') {
      const marker = {
        phase: event.kind === 'weights-progress' ? 'weight-loading' : 'cuda-graph-capture',
        signs: [],
        isWeak: true,
      } as const;
      if (this.#phase.mark(marker, sighting) && this.#phase.bar(event.done, event.of, sighting)) this.#progress(sighting);
    } else if (event.kind === 'ready') this.#ready(sighting);
    else if (event.kind === 'retraction') this.#work.retract(sighting);
    else if (event.kind === 'graphs-end') this.#seen.graphs = sighting;
    else if (event.kind === 'weights-end') this.#seen.hasLoaded = true;
    else if (event.kind === 'arguments') this.#seen.isMultiNode ||= Number(event.values['nnodes'] ?? 1) > 1;
  }

  /** Uvicorn's "Application startup complete" is readiness in vLLM, and comes before the warm-up request in SGLang. */
  #ready(sighting: Sighting): void {
    const { engine } = this.#figures.read();
    const isOwnWord = /fired up and ready/i.test(sighting.text);
    const isSglang = engine === 'sglang';
    if (!isOwnWord && isSglang) return;
    this.#phase.beReady(sighting);
    this.#findings.live(sighting, true);
    this.#progress(sighting);
  }

  /** Lines that a server at work prints over and over: most of a long log. Every so many are read, and the last ones. */
  #passOver(found: FoundLine): boolean {
    this.#routineSeen += 1;
    if (this.#routineSeen < ROUTINE_READ || this.#routineSeen % ROUTINE_EVERY === 0) return false;
    this.#skipped.push({ line: found.line, text: found.latin() });
    if (this.#skipped.length > 2 * SKIPPED_KEPT) this.#skipped = this.#skipped.slice(-SKIPPED_KEPT);
    return true;
  }

  /** In their place: before a line that means something else, and at the end. */
  #readSkipped(): void {
    const skipped = this.#skipped.slice(-SKIPPED_KEPT);
    this.#skipped = [];
    for (const { line, text } of skipped) {
      if (/"POST/i.test(text)) this.#answer({ line, text, at: this.#clock.timeOf(text) });
      else this.#readWork(line, text);
    }
  }

  /** An anchor that has been met so often that it can say nothing new. */
  #isTired(anchor: number): boolean {
    const count = (this.#met[anchor] ?? 0) + 1;
    this.#met[anchor] = count;
    return count > MET_ENOUGH && this.#watch.canTire[anchor] === true;
  }

  #readWork(line: number, record: string): void {
    const { event } = this.#figures.add(record, line);
    if (event?.kind !== 'decode' && event?.kind !== 'prefill') return;
    const sighting = { line, text: record, at: this.#clock.timeOf(record) };
    const isWork = this.#work.reading(event, sighting, this.#phase.ready === undefined && this.#phase.phase !== '');
    if (event.kind === 'prefill' && this.#phase.ready === undefined)
      this.#phase.mark({ phase: 'warmup', signs: [], isWeak: true }, sighting);
    // The health check generates one token, and only once the server says of itself that it is up.
    if (event.kind === 'prefill' && event.newTokens <= 1 && event.running === 0) this.#phase.beReady(sighting);
    if (!isWork) return;
    this.#findings.live(sighting);
    this.#progress(sighting);
  }

  #answer(sighting: Sighting): void {
    const status = this.#work.answer(sighting, this.#phase.ready !== undefined);
    if (status === undefined || status >= 300) return;
    this.#findings.live(sighting);
    this.#progress(sighting);
  }

  #notice(sighting: Sighting): void {
    // During a start they stand beside compilation, and say nothing of later steps.
    if (this.#phaseNow() === 'serving') this.#seen.noticesAtWork += 1;
    if (this.#seen.notices.length < 100) this.#seen.notices.push(sighting);
  }

  #mark(watched: readonly Watched[], sighting: Sighting): void {
    for (const one of watched) {
      if (one.kind !== 'marker' || matchSign(one.sign, sighting.text) === undefined) continue;
      if (one.marker.phase === 'argument-parsing') this.#beginAnew();
      const before = this.#phase.phase;
      if (this.#phase.mark(one.marker, sighting) && (before !== this.#phase.phase || one.marker.phase === 'torch-compile'))
        this.#progress(sighting);
    }
  }

  /** The same log, another start: after one that ended or was serving. */
  #beginAnew(): void {
    if (this.#findings.deaths.length + this.#findings.found.length === 0 && this.#phase.ready === undefined) return;
    this.#seen.startsBefore += 1;
    this.#phase = new PhaseTrack();
    this.#work = new WorkTrack();
    this.#findings = new FindingTrack();
    this.#seen.notices = [];
    this.#seen.noticesAtWork = 0;
    this.#seen.lastProgress = undefined;
    this.#seen.graphs = undefined;
    this.#seen.openTraceback = undefined;
    this.#seen.shutdown = undefined;
  }

  #phaseNow(): Phase | '' {
    const { ready } = this.#phase;
    const hasServed = ready !== undefined || this.#work.hasAnswered || this.#work.work.some(({ isProbe }) => !isProbe);
    return hasServed ? 'serving' : this.#phase.phase;
  }
}
