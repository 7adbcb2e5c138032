/** What the numbers of a machine mean for a run. Pure: facts in, lines out; `measure-*.ts` gathers the facts. */
import { formatBytes, formatCount } from '../../base/units.ts';
import { type Mount, networkBehind } from '../../host/file-systems.ts';
import { type DoctorCheck, fails, ok, warning } from './finding.ts';

/** What the run named on the command line needs; without a run, what is usual. */
export interface Needs {
  /** Requests in flight; 0 = no run was named. */
  readonly inFlight: number;
  readonly servers: number;
  readonly partitions: number;
  /** Sum of the budgets in tokens; 0 = unknown. */
  readonly budgetTokens: number;
  /** A server is started here, so the package, the model and pip matter. */
  readonly embedded: boolean;
}

export function judgeNode({ version, arch, platform }: { version: string; arch: string; platform: string }): DoctorCheck {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const facts = { version, arch, platform };
  const says = `Node ${version} on ${platform} ${arch}`;
  if (major < 20 || (major === 20 && minor < 19))
    return fails('node', `${says}; Aerie needs 20.19 or newer`, 'Install a newer Node.', facts);
  if (platform === 'linux' && arch === 'x64') return ok('node', says, facts);
  return warning('node', `${says}; Aerie has been tried on linux x64 only`, 'Try a small run first: aerie preview RUN', facts);
}

/** Ledger, lock, logs, standard streams, node's own; and per partition a shard, its prompts twice, its refused rows. */
const OWN_FILES = 64;
const FILES_PER_PARTITION = 4;
/** The most that the benchmarks ask for; a run without a name is measured against it. */
const USUAL_IN_FLIGHT = 2048;

export function judgeOpenFiles(limit: number, needs: Needs): DoctorCheck {
  const own = OWN_FILES + FILES_PER_PARTITION * Math.max(1, needs.partitions);
  const allows = Math.max(0, limit - own);
  const facts = { limit, allowsInFlight: Number.isFinite(allows) ? allows : -1, inFlight: needs.inFlight };
  if (!Number.isFinite(limit)) return ok('open files', 'no limit', { ...facts, limit: -1 });
  const says = `${formatCount(limit)} files may be open, enough for ${formatCount(allows)} requests in flight`;
  const wanted = own + (needs.inFlight || USUAL_IN_FLIGHT);
  // Node raises its own limit to the hard one, so that one is to be raised.
  const raise = `ulimit -Hn shows the most that may be; raise it (limits.conf, systemd LimitNOFILE, docker --ulimit nofile) to ${formatCount(2 ** Math.ceil(Math.log2(wanted)))}`;
  if (needs.inFlight > allows)
    return fails(
      'open files',
      `${says}; this run asks for ${formatCount(needs.inFlight)}`,
      `${raise}, or lower in-flight.`,
      facts,
    );
  if (needs.inFlight === 0 && allows < USUAL_IN_FLIGHT) return warning('open files', says, `${raise}.`, facts);
  return ok('open files', says, facts);
}

/** Below this nothing goes well: node with 2,048 answers in flight holds some 350 MB, a small model 300 MB. */
const LEAST_MEMORY = 2 ** 30;

export function judgeMemory({ totalBytes, freeBytes }: { totalBytes: number; freeBytes: number }): DoctorCheck {
  const says = `${formatBytes(freeBytes)} of ${formatBytes(totalBytes)} are free`;
  const facts = { totalBytes, freeBytes };
  if (freeBytes >= LEAST_MEMORY) return ok('memory', says, facts);
  return warning('memory', says, 'End other programs, or keep in-flight small; a small model needs about 300 MiB.', facts);
}

/** A record of 4,000 tokens is some 45 KB: ids of six characters, and the text. */
const BYTES_PER_TOKEN = 12;
/** A shard is sealed at 256 MB and the ledger grows beside it. */
const LITTLE_SPACE = 2 ** 30;
/** Not even a small run fits. */
const NO_SPACE = 2 ** 26;

export function judgeSpace(freeBytes: number, { budgetTokens }: Needs): DoctorCheck {
  const needBytes = budgetTokens * BYTES_PER_TOKEN;
  const facts = { freeBytes, needBytes };
  const need =
    needBytes > 0
      ? `; the budgets of this run (${formatCount(budgetTokens)} tokens) come to about ${formatBytes(needBytes)}`
      : '';
  const says = `${formatBytes(freeBytes)} are free${need}`;
  const next = 'Free space, or put the run file on a larger disk. A run on a full disk stops safely and resumes.';
  if (freeBytes < NO_SPACE) return fails('disk space', says, next, facts);
  if (freeBytes < Math.max(LITTLE_SPACE, needBytes)) return warning('disk space', says, next, facts);
  return ok('disk space', says, facts);
}

/** Group commits gather for 20 ms: a disk that takes much longer for one fsync holds answers back, and loses none. */
const SLOW_SYNC_MS = 100;

export function judgeLatency(roundsMs: readonly number[]): DoctorCheck {
  const sorted = [...roundsMs].sort((a, b) => a - b);
  const medianMs = round(sorted[Math.floor(sorted.length / 2)] ?? 0);
  const worstMs = round(sorted.at(-1) ?? 0);
  const facts = { medianMs, worstMs, rounds: sorted.length };
  const says = `write, fsync and rename take ${medianMs} ms (median of ${sorted.length}, worst ${worstMs} ms)`;
  if (medianMs <= SLOW_SYNC_MS) return ok('disk sync', says, facts);
  return warning('disk sync', says, 'Records are safe there, only later; a local SSD takes a few milliseconds.', facts);
}

export function judgeFileSystem(folder: string, mount: Mount | undefined): DoctorCheck {
  if (mount === undefined) {
    const next = 'Make sure that it is a disk of this machine: df FOLDER';
    return warning('file system', `the system does not say what holds ${folder}`, next);
  }
  const facts = { type: mount.type, at: mount.at, source: mount.source };
  const says = `${mount.type} at ${mount.at} holds ${folder}`;
  const network = networkBehind(mount);
  if (network !== undefined) {
    const next = 'Put the run file on a disk of this machine; aerie run refuses this folder (aerie explain disk.network).';
    return fails('file system', `${says}: ${network}, where locks and fsync are not what they say`, next, facts);
  }
  if (mount.type === 'tmpfs') return warning('file system', `${says}: memory, gone after a reboot`, 'Use a disk.', facts);
  if (!mount.type.startsWith('fuse.') && mount.type !== 'virtiofs') return ok('file system', says, facts);
  return warning('file system', `${says}: its fsync is another program’s`, 'A local disk is safer.', facts);
}

export interface LockFacts {
  /** What a second process was told while the first one held the lock, and after it had given it back. */
  readonly whileHeld: string;
  readonly afterwards: string;
}

export function judgeLock({ whileHeld, afterwards }: LockFacts): DoctorCheck {
  const facts = { whileHeld, afterwards };
  const next = 'Put the run file on another disk: here two workers could work on one run.';
  if (whileHeld === 'refused' && afterwards === 'taken')
    return ok('locking', 'a second process is refused while the lock is held, and gets it afterwards', facts);
  if (whileHeld === 'taken') return fails('locking', 'a second process got a lock that was held', next, facts);
  return fails(
    'locking',
    `a second process should be refused and then served; it said: ${whileHeld}, ${afterwards}`,
    next,
    facts,
  );
}

function round(ms: number): number {
  return Math.round(ms * 10) / 10;
}
