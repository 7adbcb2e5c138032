/**
 * One launch of a GPU server as a `LaunchedProcess`: watched while this worker lives, and left running when it ends. What the
 * watch sees becomes events; that it is over becomes `exited`, after `onOver` has written down how.
 */
import type { Emit } from '../../base/events.ts';
import type { LiveVerdict } from '../../diagnosis/live/look.ts';
import type { Clock } from '../../host/host.ts';
import type { Reach } from '../../machine/machine.ts';
import type { LaunchedProcess } from '../launched-process.ts';
import { describeStranger, findStranger } from './find-stranger.ts';
import type { LaunchRecord } from './launch-book.ts';
import { LaunchWatch, type WatchOptions } from './launch-watch.ts';
import { VerdictTeller } from './tell-verdict.ts';

export interface LaunchedEngineOptions extends Omit<WatchOptions, 'onLook'> {
  readonly reach: Reach;
  readonly name: string;
  readonly emit: Emit;
  /** Stops what is left, writes down how it ended; then the launch counts as ended. */
  readonly onOver: (verdict: LiveVerdict) => Promise<void>;
}

const LOOK_EVERY_MS = 250;
/** Between two questions who has its port: each looks through all processes. */
const PORT_EVERY_MS = 2_000;
/** A look that is under way ends within two seconds. */
const LEAVE_MS = 5_000;

export class LaunchedEngine implements LaunchedProcess {
  readonly watch: LaunchWatch;
  readonly exited: Promise<string>;
  readonly pid: number;
  readonly logPath: string;
  readonly record: LaunchRecord;
  readonly reach: Reach;
  readonly #clock: Clock;
  readonly #left = new AbortController();
  readonly #watching: Promise<void>;
  #end: (how: string) => void = () => undefined;
  #isOver = false;
  /** Pid; 0 = none. */
  #stranger = 0;
  readonly #options: LaunchedEngineOptions;

  constructor(options: LaunchedEngineOptions) {
    this.#options = options;
    const { launch, clock } = options;
    this.record = launch;
    this.reach = options.reach;
    this.#clock = clock;
    this.pid = launch.identity?.pid ?? 0;
    this.logPath = launch.logPath;
    const { name, emit } = options;
    const teller = new VerdictTeller({ name, emit, facts: { launch: launch.n } });
    this.watch = new LaunchWatch({ ...options, onLook: (verdict, progress) => teller.look(verdict, progress) });
    this.exited = new Promise((resolve) => {
      this.#end = resolve;
    });
    this.#watching = this.#follow(options);
  }

  get baseUrl(): string {
    return this.reach.baseUrl;
  }

  async listening(signal: AbortSignal): Promise<string | undefined> {
    while (!this.#isOver && !signal.aborted) {
      if (this.watch.isListening) {
        if (!(await this.#isAnsweredForByOthers())) return this.baseUrl;
        await this.#clock.sleep(PORT_EVERY_MS, signal);
      }
      const refused = this.reach.refusal();
      if (refused !== undefined) throw refused;
      await this.#clock.sleep(LOOK_EVERY_MS, signal);
    }
    return undefined;
  }

  /** Said once for each who does. */
  async #isAnsweredForByOthers(): Promise<boolean> {
    const { machine, emit, name } = this.#options;
    const stranger = await findStranger({ machine, launch: this.record, account: this.watch.account });
    if (stranger !== undefined && stranger.pid !== this.#stranger)
      emit({ kind: 'server.waiting', subject: name, facts: { seen: describeStranger(stranger, machine) } });
    this.#stranger = stranger?.pid ?? 0;
    return stranger !== undefined;
  }

  async leave(): Promise<'running'> {
    this.#left.abort();
    // A look at a machine that is out of reach may wait for long.
    const hasLeft = new AbortController();
    await Promise.race([this.#watching, this.#clock.sleep(LEAVE_MS, hasLeft.signal)]);
    hasLeft.abort(); // else the process waits for the clock
    return 'running';
  }

  async #follow(options: LaunchedEngineOptions): Promise<void> {
    try {
      const over = await this.watch.untilOver(this.#left.signal);
      if (over !== undefined) {
        await options.onOver(over);
        this.#end(`${over.state}${over.phase === '' ? '' : ` in ${over.phase}`}: ${over.title}`);
      }
      this.#isOver = over !== undefined;
    } catch (thrown) {
      // Its machine stayed away too long. The next launch asks that machine first, and so nothing is started beside it.
      this.#isOver = true;
      this.#end(thrown instanceof Error ? thrown.message : String(thrown));
    }
    this.watch.close();
    await options.control.close();
    await options.reach.close();
  }
}
