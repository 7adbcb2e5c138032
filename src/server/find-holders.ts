/**
 * Who holds memory of the GPUs, as far as anybody tells: the machine itself, docker for the names of containers, and the machine
 * around it, where the run file names one (`outer:`) and from inside nobody is seen or only pids of the host are.
 *
 * On failure: what could not be asked is in `unknown`; the machine around that is out of reach is no reason to throw.
 */
import { AerieError } from '../base/errors.ts';
import { quoteShell } from '../base/quote-shell.ts';
import type { Holder, HoldersLook, Machine } from '../machine/machine.ts';

type Asked = Pick<Machine, 'holders' | 'run' | 'name' | 'isHere'>;

export async function findHolders(machine: Asked, outer?: Asked): Promise<HoldersLook> {
  const here = await machine.holders();
  const named = { ...here, holders: await nameContainers(machine, here.holders) };
  if (!needsOuter(here.holders)) return named;
  if (outer === undefined) return machine.isHere ? named : { ...named, unknown: [...named.unknown, WRITE_OUTER] };
  try {
    return addOutside(named, await lookOutside(machine, outer));
  } catch (thrown) {
    if (!(thrown instanceof AerieError)) throw thrown;
    return { ...named, unknown: [...named.unknown, `who holds it on ${outer.name}: ${thrown.message}`] };
  }
}

/** Only of a machine behind ssh can the run file say what is around it. */
const WRITE_OUTER =
  'who holds it outside of that machine. Where it is a container, let Aerie ask its host: in the run file write  machine: { ssh: …, outer: ssh://root@HOST }';

/** Nobody is said to hold any, or a pid is the host's. */
export function needsOuter(holders: readonly Holder[]): boolean {
  return !holders.some(({ usedMiB }) => usedMiB !== undefined) || holders.some(({ identity }) => identity === undefined);
}

/** A machine says that this is beyond it; where the one around it was asked, it is not. */
const BEYOND = /^processes outside this container/;

/** What is held from outside takes the place of the bare pid that is seen of it from inside. Pure. */
export function addOutside(here: HoldersLook, outside: HoldersLook): HoldersLook {
  const isTold = ({ pid, identity }: Holder) => identity !== undefined || !outside.holders.some((one) => one.pid === pid);
  // A holder that is named here needs no second name.
  const isNew = ({ outside: place }: Holder) =>
    !here.holders.some(({ identity }) => identity !== undefined && identity.pid === place?.innerPid);
  return {
    holders: [...here.holders.filter(isTold), ...outside.holders.filter(isNew)],
    unknown: [...here.unknown.filter((what) => !BEYOND.test(what)), ...outside.unknown],
  };
}

/** Those that hold memory; who has a device open and holds none is nobody's business from here. */
async function lookOutside(machine: Asked, outer: Asked): Promise<HoldersLook> {
  const look = await outer.holders();
  const holding = look.holders.filter(({ usedMiB, by }) => usedMiB !== undefined || by === 'zombie');
  const named = await nameContainers(outer, holding);
  const inner = await findInnerPids(machine, outer, named);
  const holders = named.map((holder): Holder => {
    const { identity, pid } = holder;
    if (identity === undefined) return holder;
    return { ...holder, identity: undefined, outside: { machine: outer.name, identity, innerPid: inner.get(pid) } };
  });
  return { holders, unknown: look.unknown.map((what) => `on ${outer.name}: ${what}`) };
}

/** /proc answers at once; a machine behind ssh takes its round trip. */
const ASK_MS = 10_000;

/** Pids of holders as this machine has them, by those of the host: where both are in one pid namespace, NSpid says it. */
async function findInnerPids(machine: Asked, outer: Asked, holders: readonly Holder[]): Promise<ReadonlyMap<number, number>> {
  const pids = [...new Set(holders.map(({ pid }) => pid))];
  const own = await machine.run({ file: 'readlink', args: ['/proc/self/ns/pid'], timeoutMs: ASK_MS });
  if (pids.length === 0 || own.kind !== 'ended' || own.code !== 0) return new Map();
  const script = pids
    .map((pid) => `echo "${pid} $(readlink /proc/${pid}/ns/pid) $(grep ^NSpid: /proc/${pid}/status)"`)
    .join('\n');
  const told = await outer.run({ file: 'sh', args: ['-c', script], timeoutMs: ASK_MS });
  return told.kind === 'ended' ? parseInnerPids(told.stdout, own.stdout.trim()) : new Map();
}

/** `4242 pid:[4026532500] NSpid: 4242 77`: in the namespace that is asked for it is 77. Pure. */
export function parseInnerPids(text: string, namespace: string): ReadonlyMap<number, number> {
  const rows = text.split('\n').flatMap((line): [number, number][] => {
    const [pid, own, key, ...numbers] = line.trim().split(/\s+/);
    const last = Number(numbers.at(-1));
    return own === namespace && key === 'NSpid:' && Number.isInteger(last) ? [[Number(pid), last]] : [];
  });
  return new Map(rows);
}

/** `docker-0123456789ab` → `docker-0123456789ab (vllm)`, where docker is there and may be asked. */
async function nameContainers(machine: Pick<Machine, 'run'>, holders: readonly Holder[]): Promise<readonly Holder[]> {
  const programs = [...new Set(holders.flatMap(({ container }) => programOf(container) ?? []))];
  if (programs.length === 0) return holders;
  const names = new Map<string, string>();
  for (const program of programs) {
    const script = `${quoteShell(program)} ps --no-trunc --format '{{.ID}} {{.Names}}'`;
    const result = await machine.run({ file: 'sh', args: ['-c', script], timeoutMs: ASK_MS });
    if (result.kind === 'ended' && result.code === 0) for (const [id, name] of parseNames(result.stdout)) names.set(id, name);
  }
  return holders.map((holder) => {
    const name = names.get(holder.container.split('-').at(-1) ?? '');
    return name === undefined ? holder : { ...holder, container: `${holder.container} (${name})` };
  });
}

function programOf(container: string): 'docker' | 'podman' | undefined {
  if (container.startsWith('docker-')) return 'docker';
  return container.startsWith('libpod-') ? 'podman' : undefined;
}

/** The first twelve digits of an id, as cgroups are told, and the name. Pure. */
export function parseNames(text: string): readonly (readonly [string, string])[] {
  return text.split('\n').flatMap((line) => {
    const [, id, name] = /^([0-9a-f]{12})[0-9a-f]* (\S+)$/.exec(line.trim()) ?? [];
    return id === undefined || name === undefined ? [] : [[id, name] as const];
  });
}
