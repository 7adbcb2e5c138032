/**
 * Waiting for a machine that is out of reach. A wire around a wire.
 *
 *   reached ─ a script is lost ─▶ away ─ one script after another asks whether it is back ─▶ reached | given up
 *
 * While it is away one scout asks, in growing steps; everybody else waits for the scout. A script that may repeat is then run again.
 * One that may not waits for the scout before it is sent, is sent once, and is `lost` at once. What was sent before the machine went
 * or came back says nothing about what it is after that.
 * On failure: `machine.unreachable`, `patienceMs` after it went away, or when the owner gives up; `machine.refused`, at once, where
 * waiting cannot help and the machine was never reached. Listeners are told once when it goes and once when it is back.
 */
import { AerieError } from '../../base/errors.ts';
import { formatDuration } from '../../base/units.ts';
import type { Clock } from '../../host/host.ts';
import { openTimeLimit } from '../../host/time-limit.ts';
import type { ReachChange } from '../machine.ts';
import type { ShellReply, ShellRequest, ShellWire } from '../shell-wire.ts';
import { type Lack, refusedMachine, type SshNames, whatToTry } from './what-to-try.ts';

export interface PatienceOptions extends SshNames {
  /** For sentences. */
  readonly name: string;
  readonly clock: Clock;
  readonly patienceMs: number;
  /** The owner gives up. */
  readonly signal: AbortSignal;
  readonly onChange: (change: ReachChange) => void;
}

type Lost = Extract<ShellReply, { kind: 'lost' }>;

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5_000; // an outage of minutes is noticed to be over soon enough, and nobody is flooded
const SCOUT_MS = 30_000;
/** The last look, when patience is over, still gets as long as a slow login takes. */
const LEAST_SCOUT_MS = 12_000;
/** A script that is lost every time while the machine answers is no outage: its shell is killed there. */
const MOST_LOSSES = 10;

export interface PatientShell extends ShellWire {
  /** By a script, at least once. */
  readonly wasReached: boolean;
}

export function withPatience(wire: ShellWire, options: PatienceOptions): PatientShell {
  return new PatientWire(wire, options);
}

class PatientWire implements PatientShell {
  readonly #wire: ShellWire;
  readonly #options: PatienceOptions;
  #wasReached = false;
  /** When it was last seen to go or to come. */
  #changedMs = Number.NEGATIVE_INFINITY;
  #away: { readonly sinceMs: number; lost: Lost } | undefined;
  /** The scout under way; true = the machine is back. */
  #scout: Promise<boolean> | undefined;

  constructor(wire: ShellWire, options: PatienceOptions) {
    this.#wire = wire;
    this.#options = options;
  }

  get wasReached(): boolean {
    return this.#wasReached;
  }

  async run(request: ShellRequest): Promise<ShellReply> {
    if (request.mayRepeat !== true) {
      // A start is rare, and a lost one is dear: a look at the machine has to tell whether it began.
      const scout = await this.#repeat({ script: ':', timeoutMs: SCOUT_MS, ...(request.signal && { signal: request.signal }) });
      return scout.kind === 'aborted' ? scout : this.#send(request);
    }
    return this.#repeat(request);
  }

  async #repeat(request: ShellRequest): Promise<ShellReply> {
    for (let losses = 0; ; losses++) {
      const reply = this.#away === undefined ? await this.#send(request) : this.#away.lost;
      if (reply.kind !== 'lost') return reply;
      if (losses === MOST_LOSSES) throw this.#unreachable(reply, 'rest');
      if (this.#away !== undefined && !(await this.#waitUntilBack(request.signal))) {
        if (request.signal?.aborted) return { kind: 'aborted' };
        throw this.#unreachable(this.#away?.lost ?? reply);
      }
    }
  }

  async #send(request: ShellRequest): Promise<ShellReply> {
    const sentMs = this.#options.clock.elapsed();
    const reply = await this.#wire.run(request);
    const isNews = sentMs >= this.#changedMs;
    if (reply.kind === 'lost') {
      if (reply.isConfiguration === true && !this.#wasReached) throw refusedMachine(reply, this.#options);
      if (isNews) this.#goAway(reply);
    } else if (reply.kind !== 'aborted' && isNews) this.#comeBack();
    return reply;
  }

  #goAway(lost: Lost): void {
    if (this.#away !== undefined) {
      this.#away.lost = lost;
      return;
    }
    this.#changedMs = this.#options.clock.elapsed();
    this.#away = { sinceMs: this.#changedMs, lost };
    this.#options.onChange({ isAway: true, because: lost.because, awayMs: 0 });
  }

  #comeBack(): void {
    this.#wasReached = true;
    const away = this.#away;
    if (away === undefined) return;
    this.#away = undefined;
    this.#changedMs = this.#options.clock.elapsed();
    this.#options.onChange({ isAway: false, because: '', awayMs: this.#changedMs - away.sinceMs });
  }

  /** True when it is back; false where patience is over, or `signal` aborts. */
  #waitUntilBack(signal: AbortSignal | undefined): Promise<boolean> {
    if (signal?.aborted) return Promise.resolve(false); // no scout is sent whose end nobody hears
    this.#scout ??= this.#lookUntilBack().finally(() => {
      this.#scout = undefined;
    });
    return untilAborted(this.#scout, signal);
  }

  async #lookUntilBack(): Promise<boolean> {
    const { clock, patienceMs, signal } = this.#options;
    let waitMs = FIRST_WAIT_MS;
    for (let looks = 0; ; looks++) {
      const away = this.#away;
      if (away === undefined) return true;
      const leftMs = Math.max(0, away.sinceMs + patienceMs - clock.elapsed());
      // Whoever asks after patience was over gets one look.
      if (signal.aborted || (leftMs === 0 && looks > 0)) return false;
      await clock.sleep(Math.min(waitMs, leftMs), signal);
      waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
      const limit = openTimeLimit(clock, Math.max(leftMs - waitMs, LEAST_SCOUT_MS), signal);
      await this.#send({ script: ':', timeoutMs: SCOUT_MS, signal: limit.signal });
      limit.close();
    }
  }

  #unreachable(lost: Lost, lack: Lack | undefined = lost.lacks): AerieError {
    const { name, clock } = this.#options;
    const awayMs = this.#away === undefined ? 0 : clock.elapsed() - this.#away.sinceMs;
    const sinceWhen = awayMs < 1_000 ? '' : ` for ${formatDuration(awayMs)}`;
    return new AerieError('machine.unreachable', `${name} cannot be reached${sinceWhen}: ${lost.because}`, {
      ...(lack === 'rest' && { because: `it was cut off ${MOST_LOSSES} times, and the machine answers` }),
      remedy: `What runs there goes on, and what is committed here is safe. ${whatToTry(lack, this.#options)}`,
      facts: { machine: name, awayMs: Math.round(awayMs) },
    });
  }
}

async function untilAborted(promise: Promise<boolean>, signal: AbortSignal | undefined): Promise<boolean> {
  if (signal === undefined) return promise;
  let abort = (): void => undefined;
  const aborted = new Promise<boolean>((resolve) => {
    abort = () => resolve(false);
    signal.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
