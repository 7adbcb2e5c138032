/** The system's errors on record files → Aerie's, by code and never by message text. Pure. */
import { AerieError, bug, diskCodeOf, type ErrorDetail, systemCodeOf } from '../base/errors.ts';
import { formatCount } from '../base/units.ts';

export function explainDiskError(thrown: unknown, path: string): AerieError {
  if (thrown instanceof AerieError) return thrown;
  const code = systemCodeOf(thrown);
  const detail = { evidence: [thrown instanceof Error ? thrown.message : String(thrown)], facts: { path, code } };
  const kind = diskCodeOf(code);
  if (kind === 'disk.full') {
    const remedy = 'Free space, then type the same command: everything committed so far is safe and is not done again.';
    return new AerieError(
      'disk.full',
      `${path} could not grow: the disk is full or the quota is used up.`,
      { remedy, ...detail },
      thrown,
    );
  }
  if (kind === 'disk.read-only') {
    const because = 'the system denied it: the file, its folder or the whole file system is read-only for this user';
    const remedy = 'Make the run folder writable for this user, or work on a copy of it. Nothing was written.';
    return new AerieError('disk.read-only', `${path} cannot be written.`, { because, remedy, ...detail }, thrown);
  }
  if (kind === undefined) return bug(`${path} was used wrongly: ${detail.evidence[0]}`, detail.facts);
  if (code === 'EMFILE' || code === 'ENFILE') return tooManyOpen(thrown, path, detail);
  const remedy = 'Look at the system log (dmesg) for this disk, then type the same command: it resumes.';
  return new AerieError('disk.failed', `The disk answered ${code} while ${path} was used.`, { remedy, ...detail }, thrown);
}

/** Each request in flight holds a socket, and the file was one too many: no fault of the disk. EMFILE is of this process, ENFILE of the machine. */
function tooManyOpen(thrown: unknown, path: string, detail: Pick<ErrorDetail, 'evidence' | 'facts'>): AerieError {
  const remedy =
    'Lower in-flight in the run file, or raise what may be open (ulimit -Hn, LimitNOFILE of systemd, docker --ulimit nofile).\n' +
    'Then type the same command: it resumes. aerie doctor RUN   says how many requests in flight the limit allows';
  const message = `Too many files and sockets are open for ${path} to be opened.`;
  return new AerieError('disk.failed', message, { remedy, ...detail }, thrown);
}

/** The ledger vouches for bytes that are not there: nothing may be cut or written before a person has looked. */
export function committedBytesMissing(path: string, committedBytes: number, fileBytes: number): AerieError {
  return new AerieError(
    'ledger.damaged',
    `${path} has ${formatCount(fileBytes)} bytes and the ledger has committed ${formatCount(committedBytes)}.`,
    {
      because: 'the file was cut or replaced by something else, or ledger and files come from different copies of the run',
      remedy: 'Put back a copy of the run folder (all of it, taken while no worker ran). Nothing was changed.',
      facts: { path, committedBytes, fileBytes },
    },
  );
}
