/** Says what a look saw, when it is something new: a phase, a tenth of its progress, another verdict. */
import type { Emit, Facts } from '../../base/events.ts';
import type { LiveVerdict } from '../../diagnosis/live/look.ts';

export interface TellOptions {
  readonly name: string;
  readonly emit: Emit;
  /** On every event: which launch it is about, or that it is none of Aerie's. */
  readonly facts: Facts;
  /** Nobody else tells that it is over. */
  readonly tellsEnds?: boolean;
  /** Left out: a verdict that is well again is told at once. */
  readonly isBack?: () => boolean;
}

export class VerdictTeller {
  readonly #options: TellOptions;
  #phase = '';
  #tenth = -1;
  #verdict = '';
  /** The last that was told. */
  #isToldIll = false;
  #wasWell = false;

  constructor(options: TellOptions) {
    this.#options = options;
  }

  look(verdict: LiveVerdict, progress: string): void {
    if (verdict.state === 'initializing') this.#tellPhase(verdict, progress);
    const key = `${verdict.state} ${verdict.cause}`;
    if (key === this.#verdict) return;
    const isIll = this.#isIllNow(verdict);
    const isStarting = verdict.state === 'initializing';
    if (this.#isToldIll && !isIll && !isStarting && this.#options.isBack?.() === false) return;
    this.#verdict = key;
    if (isStarting) return; // its phases are told; one that was ill comes back, and is not back yet
    if (!isIll) this.#wasWell = true;
    if (isIll || this.#isToldIll) this.#tellVerdict(verdict);
    this.#isToldIll = isIll;
  }

  /** One that has never been there is waited for, and not over. */
  #isIllNow({ cause, state }: LiveVerdict): boolean {
    const hasEnded = state === 'stopped' || state === 'absent';
    return cause !== 'none' || (this.#options.tellsEnds === true && this.#wasWell && hasEnded);
  }

  #tellPhase({ phase, progress: counted }: LiveVerdict, says: string): void {
    const tenth = counted === undefined || counted.of === 0 ? 0 : Math.floor((10 * counted.done) / counted.of);
    if (says === '' || (phase === this.#phase && tenth <= this.#tenth)) return;
    this.#phase = phase;
    this.#tenth = tenth;
    const { name, emit, facts } = this.#options;
    emit({ kind: 'launch.phase', subject: name, facts: { ...facts, phase, says } });
  }

  #tellVerdict(verdict: LiveVerdict): void {
    const { name, emit, facts } = this.#options;
    const { state, phase, cause, title, confidence, evidence, remedy, stillForMs, signs, notes } = verdict;
    const [first, second] = evidence;
    const note = state === 'stopped' ? notes.at(-1) : undefined;
    emit({
      kind: 'verdict.given',
      subject: name,
      facts: {
        ...{ ...facts, state, phase, cause, title, confidence, stillForMs, remedy: remedy.text },
        ...(first === undefined ? {} : { evidence: `${first.line}: ${first.text}` }),
        ...(second === undefined ? {} : { evidence2: `${second.line}: ${second.text}` }),
        ...(note === undefined ? {} : { note }),
        ...(signs.length === 0 ? {} : { signs: signs.join('; ') }),
      },
    });
  }
}
