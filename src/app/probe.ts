/**
 * `aerie probe`: one look at servers, wherever they are and whoever started them: do they live, what do they hold, what do they do,
 * is every rule kept? Reads and asks; starts, stops and changes nothing.
 *
 * Promises: what is known is told within three seconds (`onEarly`); all is over in twenty-five, whatever hangs; what was not
 * seen is said, with the command for someone who may see it.
 */
import { setMaxListeners } from 'node:events';
import type { Clock, Host } from '../host/host.ts';
import { systemClock } from '../host/node-host.ts';
import type { Machine } from '../machine/machine.ts';
import { programName } from '../machine/ssh/ssh-command.ts';
import type { MachineSpec } from '../spec/run.ts';
import type { OperationContext } from './context.ts';
import { type ProbeInput as Asked, chooseTarget, type Target } from './probe/choose-target.ts';
import { awayError } from './probe/describe-machine.ts';
import { earlyServer, probedServer } from './probe/describe-server.ts';
import { type Place, PlaceProbe } from './probe/probe-place.ts';
import type { EarlyServer, ProbeReport } from './probe/report.ts';
import type { ProbeWorld } from './probe/server-questions.ts';
import { machineOn } from './servers/machine-of.ts';
import { closeMachines } from './servers/opened-machines.ts';

export interface ProbeInput extends Asked {
  /** Told what is known after the first seconds; called once, unless all is known by then. */
  readonly onEarly?: (servers: readonly EarlyServer[]) => void;
}

/** From the start of the command: node itself takes some tenths of a second of the three. */
const EARLY_MS = 2_200;
const END_MS = 23_500;

export async function runProbe(input: ProbeInput, given: OperationContext): Promise<ProbeReport> {
  // What is probed lives in the world's time, whatever rate a rehearsal lives at.
  const clock = systemClock;
  const host: Host = { ...given.host, clock };
  const context: OperationContext = { ...given, host };
  const beganAt = clock.elapsed();
  const target = await chooseTarget(input, host);
  context.onNote(`probing ${target.taken}`);
  const over = new AbortController();
  const signal = AbortSignal.any([context.drain, context.abort, over.signal]);
  setMaxListeners(0, signal); // every question to every server listens while it waits
  const world: ProbeWorld = { host, clock, signal, endsAt: beganAt + END_MS };
  const places = placesOf(target, context).map((place) => new PlaceProbe(place, world));
  try {
    const running = Promise.all(places.map((place) => place.run()));
    void tellEarly(input, { places, clock, signal, dueMs: Math.max(0, EARLY_MS - (clock.elapsed() - beganAt)) });
    await running;
    context.drain.throwIfAborted();
    return await report(target, places, { context, clock, beganAt });
  } finally {
    over.abort();
    const isClosed = new AbortController();
    await Promise.race([closeAll(places, host), clock.sleep(CLOSE_MS, isClosed.signal)]);
    isClosed.abort();
  }
}

/** A connection that hangs is not waited for. */
const CLOSE_MS = 500;

async function closeAll(places: readonly PlaceProbe[], host: Host): Promise<void> {
  await Promise.allSettled([...places.map((place) => place.close()), closeMachines(host)]);
}

interface Early {
  readonly places: readonly PlaceProbe[];
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly dueMs: number;
}

async function tellEarly({ onEarly }: ProbeInput, { places, clock, signal, dueMs }: Early): Promise<void> {
  await clock.sleep(dueMs, signal);
  if (signal.aborted || onEarly === undefined) return;
  onEarly(places.flatMap((place) => place.servers.map((server) => earlyServer(server, place.place.machine.name))));
}

/** One look at a machine serves all servers there. */
function placesOf({ subjects, searched, headers, redact }: Target, context: OperationContext): Place[] {
  const keys = new Map<string, MachineSpec | undefined>();
  for (const { machine } of subjects) keys.set(machine?.ssh ?? '', machine);
  const places = [...keys].map(([key, spec]): Place => {
    const machine: Machine = machineOn(spec, context);
    return { machine, subjects: subjects.filter((one) => (one.machine?.ssh ?? '') === key), isSearched: false, headers, redact };
  });
  if (searched === undefined) return places;
  return [...places, { machine: machineOn(searched, context), subjects: [], isSearched: true, headers, redact }];
}

async function report(
  target: Target,
  places: readonly PlaceProbe[],
  { context, clock, beganAt }: { readonly context: OperationContext; readonly clock: Clock; readonly beganAt: number },
): Promise<ProbeReport> {
  const machines = places.map((place) => place.report());
  const [away] = machines.filter(({ isAway }) => isAway);
  const shut = places.find(({ refusal }) => refusal !== undefined)?.refusal;
  // Nothing but the machine was asked for, and it lets nobody in, or is not there: that no server was found would be untrue.
  if (shut !== undefined && target.searched !== undefined) throw shut;
  if (away !== undefined && target.searched !== undefined)
    throw awayError(away, { program: programName(context.host), target: target.searched.ssh });
  const within = beganAt + END_MS;
  const servers = await Promise.all(
    places.flatMap((place) => place.servers.map((server) => probedServer(server, { place, context, clock, within }))),
  );
  const refusal =
    shut ?? places.flatMap((place) => place.servers).find(({ questions }) => questions.refusal !== undefined)?.questions.refusal;
  const areWell = servers.length > 0 && servers.every(({ isReady, isPolicyKept }) => isReady && isPolicyKept);
  const isWell = areWell && refusal === undefined;
  return { taken: target.taken, servers, machines, isWell, refusal, tookMs: clock.elapsed() - beganAt };
}
