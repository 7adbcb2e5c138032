/**
 * SQLite's errors → Aerie's. Pure but for reading the thrown value. Classified by SQLite's primary code and the system's
 * errno, never by message text. What is none of the disk's doing is a bug of Aerie's own: SQL is written here, not given.
 */
import { AerieError, bug, systemCodeOf } from '../../base/errors.ts';

/** https://sqlite.org/rescode.html: the low byte is the primary code, the rest says where. */
const SQLITE = { perm: 3, busy: 5, readOnly: 8, ioError: 10, corrupt: 11, full: 13, cannotOpen: 14, notADatabase: 26 } as const;

/** Linux and macOS agree on these. EDQUOT differs between them, so both are here. */
const FULL_ERRNOS = new Set([28, 122, 69]); // ENOSPC, EDQUOT (Linux), EDQUOT (macOS)
const DENIED_ERRNOS = new Set([1, 13, 30]); // EPERM, EACCES, EROFS

/** A busy file is told apart by the lock, which expects it. */
export function isBusy(thrown: unknown): boolean {
  return primaryCodeOf(thrown) === SQLITE.busy;
}

/** What a read-only opening meets where SQLite would have to write the files beside the ledger. */
export function isForWantOfWriting(thrown: unknown): boolean {
  const code = primaryCodeOf(thrown);
  return code === SQLITE.cannotOpen || code === SQLITE.readOnly;
}

export function explainSqliteError(thrown: unknown, path: string): AerieError {
  if (thrown instanceof AerieError) return thrown;
  const evidence = [`${path}: ${thrown instanceof Error ? thrown.message : String(thrown)}`];
  const facts = { path, sqlite: numberOf(thrown, 'errcode'), errno: numberOf(thrown, 'systemErrno') };
  switch (classify(thrown)) {
    case 'disk.full':
      return new AerieError(
        'disk.full',
        `${path} could not grow: the disk is full or the quota is used up.`,
        {
          remedy: 'Free space, then type the same command: everything committed so far is safe and is not done again.',
          evidence,
          facts,
        },
        thrown,
      );
    case 'disk.read-only':
      return new AerieError(
        'disk.read-only',
        `${path} cannot be written.`,
        {
          because: 'the system denied it: the file, its folder or the whole file system is read-only for this user',
          remedy: 'Make the run folder writable for this user, or work on a copy of it. Nothing was written.',
          evidence,
          facts,
        },
        thrown,
      );
    case 'ledger.damaged':
      return new AerieError(
        'ledger.damaged',
        `${path} is not a whole SQLite file.`,
        {
          remedy:
            'Put back a copy of the run folder (all of it, taken while no worker ran). The records under records/ were not touched.',
          evidence,
          facts,
        },
        thrown,
      );
    case 'ledger.held-elsewhere':
      return new AerieError(
        'ledger.held-elsewhere',
        `${path} is being written by another process; it was waited for.`,
        { remedy: 'End the other process (a backup tool or an SQLite shell?), then type the same command.', evidence, facts },
        thrown,
      );
    case 'disk.failed':
      return new AerieError(
        'disk.failed',
        `The disk answered with an error while ${path} was used.`,
        { remedy: 'Look at the system log (dmesg) for this disk, then type the same command: it resumes.', evidence, facts },
        thrown,
      );
    case 'bug.invariant':
      return explainUnexpected(thrown, facts);
  }
}

type Explained = 'disk.full' | 'disk.read-only' | 'disk.failed' | 'ledger.damaged' | 'ledger.held-elsewhere' | 'bug.invariant';

function classify(thrown: unknown): Explained {
  const errno = numberOf(thrown, 'systemErrno');
  switch (primaryCodeOf(thrown)) {
    case SQLITE.full:
      return 'disk.full';
    case SQLITE.readOnly:
    case SQLITE.perm:
      return 'disk.read-only';
    case SQLITE.corrupt:
    case SQLITE.notADatabase:
      return 'ledger.damaged';
    case SQLITE.busy:
      return 'ledger.held-elsewhere';
    case SQLITE.ioError:
    case SQLITE.cannotOpen:
      return classifyErrno(errno);
    default:
      return classifySystemCode(systemCodeOf(thrown));
  }
}

function classifyErrno(errno: number): Explained {
  if (FULL_ERRNOS.has(errno)) return 'disk.full';
  return DENIED_ERRNOS.has(errno) ? 'disk.read-only' : 'disk.failed';
}

/** The lock's name file is written with node:fs, whose errors carry names. */
function classifySystemCode(code: string): Explained {
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'disk.full';
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS') return 'disk.read-only';
  // ERR_… are Node's and the library's own: a wrong call, not a wrong disk.
  return code === '' || code.startsWith('ERR_') ? 'bug.invariant' : 'disk.failed';
}

function explainUnexpected(thrown: unknown, facts: Readonly<Record<string, string | number>>): AerieError {
  const error = bug(
    `The ledger refused what Aerie asked of it: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    facts,
  );
  return new AerieError(error.code, error.message, error.detail, thrown);
}

function primaryCodeOf(thrown: unknown): number {
  return numberOf(thrown, 'errcode') & 0xff;
}

function numberOf(thrown: unknown, key: 'errcode' | 'systemErrno'): number {
  if (typeof thrown !== 'object' || thrown === null || !(key in thrown)) return 0;
  const value = (thrown as Readonly<Record<string, unknown>>)[key];
  return typeof value === 'number' ? value : 0;
}
