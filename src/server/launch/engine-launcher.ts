/**
 * The launches of one server: finds the one that lives, judges the one that died, decides what follows, and starts it. Each
 * `launch()` is one round of
 *
 *   book ──lives, same flags──▶ adopted
 *     ├──lives, other flags──▶ stopped ──┐
 *     ├──died, or hung──▶ verdict ──▶ recovery ──gives up──▶ throws server.gave-up
 *     │                                  └──relaunch──┐
 *     └──nothing yet ─────────────────────────────────┴──▶ memory free? preflight ──▶ started
 *
 * Promises: never two launches of one server; nothing is started before the memory of the last one is back; nothing is stopped that
 * Aerie did not start; every verdict, change and reason is an event before it is acted on.
 */
import { AerieError } from '../../base/errors.ts';
import type { LiveVerdict } from '../../diagnosis/live/look.ts';
import { portIn } from '../../engine/launching.ts';
import type { PolicyRule } from '../../spec/run.ts';
import type { LaunchedProcess } from '../launched-process.ts';
import { launchKey } from '../recovery/changes.ts';
import type { Env } from '../recovery/recovery.ts';
import { beginLaunch } from './begin-launch.ts';
import { sayChanged } from './book-under-rule.ts';
import { machineOfLaunch } from './contained-launch.ts';
import { findFreePort } from './find-free-port.ts';
import { findStarted, findToStop } from './find-started.ts';
import { findAddress, refusedLoopback } from './launch-address.ts';
import type { LaunchRecord, ServerBook } from './launch-book.ts';
import { findLiving, type LauncherLife, noteOver } from './launch-endings.ts';
import type { LaunchedEngine } from './launched-engine.ts';
import type { LauncherOptions } from './launcher-options.ts';
import { LOOPBACK } from './loopback.ts';
import { awaitFreeMemory, describeLeft, endLaunch, lookAtMemory } from './make-room.ts';
import { decideNext, keepAddedRule, keepRule, type Next, type Wanted, wantedOf } from './next-launch.ts';
import { openEngine } from './open-engine.ts';
import { refuseClosedWay } from './preflight-way.ts';
import { runPreflight } from './run-preflight.ts';
import { tellLaunch } from './tell-launch.ts';

export interface StoppedLaunch {
  /** 0 = none was running. */
  readonly pid: number;
  readonly says: readonly string[];
  readonly isGone: boolean;
  /** By the cards that were seen before its first launch; true where none was. */
  readonly isMemoryFree: boolean;
  /** Cards that were looked at. */
  readonly gpus: number;
  /** The next start knows that this end was asked for. */
  readonly isNoted: boolean;
}

export class EngineLauncher {
  readonly #options: LauncherOptions;
  #engine: LaunchedEngine | undefined;
  #answeredBefore = 0;

  constructor(options: LauncherOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  /** The launch that this worker watches. */
  get engine(): LaunchedEngine | undefined {
    return this.#engine;
  }

  /** A start whose answer was lost with the connection is looked for in a next round: only the machine knows whether it was one. */
  async launch(): Promise<LaunchedProcess> {
    for (;;) {
      const launched = await this.#round();
      if (launched !== undefined) return launched;
    }
  }

  async #round(): Promise<LaunchedProcess | undefined> {
    const { shelf, policyRefuses, host } = this.#options;
    const finding = { ...this.#options, clock: host.clock };
    const found = await findLiving(this.#life, await shelf.read(), (record) => findStarted(finding, record));
    const wanted = wantedOf(this.#options, found);
    policyRefuses(wanted.flags);
    if (found.current !== undefined) {
      const kept = await this.#adopt(found, found.current, wanted);
      if (kept !== undefined) return kept;
    }
    const book = await this.#options.shelf.read();
    return await this.#begin(await decideNext(this.#options, book));
  }

  async #begin({ flags, env, book }: Next): Promise<LaunchedProcess | undefined> {
    const { dialect, machine, host } = this.#options;
    await awaitFreeMemory(this.#options, book.baseline ?? []);
    refuseWhenStopping(this.#options);
    const place = { ...this.#options.place, ...(await this.#options.paths()) };
    const port = portIn(flags) ?? (place.port > 0 ? place.port : await findFreePort(machine, host.random));
    const values = this.#valuesOf(env);
    await refuseClosedWay(this.#options, port);
    const effective = dialect.launching?.effectiveFlags({ model: place.model, host: LOOPBACK, port, flags }) ?? flags;
    const baseline = await runPreflight(this.#options, {
      ...{ flags, effective, values, baseline: book.baseline ?? [], workFolder: place.workFolder, logPath: place.logPath },
    });
    const started = await beginLaunch({
      ...this.#options,
      ...{ place, flags, port, env, values, book: { ...book, baseline } },
      onStarting: (starting) =>
        tellLaunch(this.#options, 'launch.starting', starting, { line: starting.line, log: starting.logPath }),
      clock: this.#options.host.clock,
    }).catch((thrown: unknown) => {
      if (!isAway(thrown)) throw thrown;
      return undefined;
    });
    if (started === undefined) return undefined;
    const { book: begun, record } = started;
    tellLaunch(this.#options, 'launch.started', record, {
      pid: record.identity?.pid ?? 0,
      port: record.port,
      log: record.logPath,
    });
    return this.#watch(begun, record);
  }

  /** A rule that came later: the next `launch()` keeps it. Returns why no flag can, '' where one does. */
  keepRule(rule: PolicyRule): Promise<string> {
    return keepRule(this.#options, rule);
  }

  /** The same at a start, for a rule that the ledger has; a rule that the book has seen changes nothing. */
  keepAddedRule(rule: PolicyRule): Promise<void> {
    return keepAddedRule(this.#options, rule);
  }

  /** Throws `policy.forbids` where the next launch would break a rule in force; looks at nothing that runs. */
  async refuseForbidden(): Promise<void> {
    const { shelf, policyRefuses } = this.#options;
    policyRefuses(wantedOf(this.#options, await shelf.read()).flags);
  }

  /** Ends the launch that the book knows, whoever watched it. */
  async stop(): Promise<StoppedLaunch> {
    const { shelf, machine } = this.#options;
    const book = await findLiving(this.#life, await shelf.read(), (record) => findToStop(machine, record));
    const record = book.current ?? book.leftover;
    if (record === undefined) return { pid: 0, says: [], isGone: true, isMemoryFree: true, gpus: 0, isNoted: true };
    const report = await endLaunch(this.#options, record);
    const isGone = report?.isStopped ?? true;
    const isNoted = await shelf.noteStopped(book, isGone); // first: a disk that is nearly full takes this and no event
    // Of a leftover it was told when its end was seen.
    if (book.current !== undefined) tellLaunch(this.#options, 'launch.ended', record, { how: 'stopped by a person' });
    const inside = { ...this.#options, machine: machineOfLaunch(machine, record) };
    const { baseline = [] } = book;
    const held = await lookAtMemory(inside, baseline, record.marker);
    return {
      pid: record.identity?.pid ?? 0,
      says: [...(report === undefined ? [] : describeLeft(report)), ...held],
      isGone,
      isMemoryFree: held.length === 0,
      gpus: baseline.length,
      isNoted,
    };
  }

  /** It is ready: its launch is remembered as one that came so far. */
  async noteReady(): Promise<void> {
    const { shelf, host } = this.#options;
    await shelf.change((book) => {
      const { current } = book;
      // It may be over meanwhile.
      return current?.readyAt === undefined && current !== undefined
        ? { ...book, current: { ...current, readyAt: host.clock.now() } }
        : undefined;
    });
  }

  async #adopt(book: ServerBook, record: LaunchRecord, wanted: Wanted): Promise<LaunchedProcess | undefined> {
    const { engine, shelf } = this.#options;
    if (launchKey(engine, record.flags, record.env) === launchKey(engine, wanted.flags, wanted.env)) {
      await shelf.write(book);
      tellLaunch(this.#options, 'launch.adopted', record, {
        pid: record.identity?.pid ?? 0,
        port: record.port,
        log: record.logPath,
      });
      return this.#watch(book, record);
    }
    tellLaunch(this.#options, 'launch.ended', record, { how: sayChanged(record, wanted.byRule) });
    await endLaunch(this.#options, record);
    const { current: _, ...without } = book;
    await shelf.write(without);
    return undefined;
  }

  async #watch(book: ServerBook, record: LaunchRecord): Promise<LaunchedProcess> {
    this.#answeredBefore = this.#options.asked().answered;
    const address = await findAddress(this.#options, record);
    const refused = refusedLoopback(record, address);
    if (refused !== undefined) {
      await endLaunch(this.#options, record);
      throw refused;
    }
    const over = async (verdict: LiveVerdict) => {
      const latest = await this.#options.shelf.read();
      await noteOver(this.#life, { ...book, ...latest }, { record: latest.current ?? record, verdict });
    };
    const engine = await openEngine(this.#options, record, { address, onOver: over });
    this.#engine = engine;
    return engine;
  }

  get #life(): LauncherLife {
    return { options: this.#options, answeredBefore: this.#answeredBefore };
  }

  #valuesOf(env: Env): Env {
    return {
      ...env,
      ...Object.fromEntries(Object.entries(this.#options.values).filter(([name]) => env[name]?.startsWith('$') === true)),
    };
  }
}

/** The machine is out of reach. */
function isAway(thrown: unknown): boolean {
  return thrown instanceof AerieError && thrown.code === 'machine.unreachable';
}

/** The pause before a launch ends early when the worker does: then nothing is to be started any more. */
function refuseWhenStopping({ name, signal }: LauncherOptions): void {
  if (!signal.aborted) return;
  throw new AerieError('run.interrupted', `${name} was not launched again: the run was stopped.`, {
    remedy: 'The same command goes on from here.',
  });
}
