/**
 * The one error class of Aerie and the closed table of its codes.
 *
 * An error is for the operator: it says what happened with numbers, what is safe, and what to type.
 * The data plane (a reply, a bad input row) never throws; it returns values. The exit code of a command
 * follows from the `fault` of the code alone.
 */

/** Who must act: the person who typed, the machine, the engine, nobody (work is saved), or Aerie's authors. */
export type Fault = 'usage' | 'environment' | 'engine' | 'stopped' | 'interrupted' | 'terminated' | 'bug';

/** Exit code of a command that ended in an error of this fault (DESIGN: exit codes). */
export const EXIT_CODE: Readonly<Record<Fault, number>> = {
  usage: 2,
  environment: 3,
  engine: 4,
  stopped: 5,
  interrupted: 130,
  terminated: 143,
  bug: 70,
};

export const ERRORS = {
  'usage.flag': { fault: 'usage', title: 'A flag or argument on the command line is wrong' },
  'run-file.missing': { fault: 'usage', title: 'The run file or run folder is not there' },
  'run-file.wrong': { fault: 'usage', title: 'The run file has mistakes' },
  'run-file.differs': { fault: 'usage', title: 'The run file would change the data of a run that has begun' },
  'run.absent': { fault: 'usage', title: 'There is no such run' },
  'source.missing': { fault: 'usage', title: 'A partition source is not there' },
  'source.unreadable': { fault: 'usage', title: 'A partition source cannot be read as what its name says' },
  'source.changed': { fault: 'usage', title: 'A partition source is not what it was when the run began' },
  'source.row-refused': { fault: 'usage', title: 'An input row was refused, and --strict stops at the first' },
  'hub.refused': { fault: 'environment', title: 'The model hub does not let this user read the data set' },
  'hub.unreachable': { fault: 'environment', title: 'The model hub cannot be reached' },
  'export.target': { fault: 'usage', title: 'The export folder cannot be used' },
  'policy.forbids': { fault: 'usage', title: 'The launch would break a policy rule' },
  'control.unanswered': { fault: 'stopped', title: 'The worker of the run has not answered' },
  'control.refused': { fault: 'stopped', title: 'The worker of the run has refused what was asked' },
  'policy.broken': { fault: 'stopped', title: 'A running server breaks a policy rule' },
  'file.exists': { fault: 'usage', title: 'A file is already there' },
  'secret.missing': { fault: 'environment', title: 'A secret named in the run file is not in the environment' },
  'node.version': { fault: 'environment', title: 'This Node is too old' },
  'disk.full': { fault: 'stopped', title: 'The disk is full' },
  'disk.read-only': { fault: 'environment', title: 'The folder cannot be written' },
  'disk.failed': { fault: 'environment', title: 'The disk answered with an error' },
  'disk.network': { fault: 'environment', title: 'The run folder would lie on a network file system' },
  'ledger.held-elsewhere': { fault: 'environment', title: 'Another worker holds the run' },
  'ledger.damaged': { fault: 'environment', title: 'The ledger does not agree with itself or with the shards' },
  'ledger.older': { fault: 'environment', title: 'The run folder was written by an Aerie before its first release' },
  'ledger.newer': { fault: 'environment', title: 'The run folder was written by a newer Aerie' },
  'log.unreadable': { fault: 'usage', title: 'A log file cannot be read' },
  'model.unavailable': { fault: 'environment', title: 'The model cannot be had' },
  'model.damaged': { fault: 'environment', title: 'The model file is not what it should be' },
  'model.shape-unknown': { fault: 'usage', title: 'The config of a model does not tell its shape' },
  'facts.contradict': { fault: 'usage', title: 'Facts about a launch contradict each other' },
  'gpu.unknown': { fault: 'usage', title: 'No such GPU is known' },
  'engine.missing': { fault: 'environment', title: 'The package of the embedded engine is not installed' },
  'machine.refused': { fault: 'environment', title: 'A machine does not let this user in or through to a port, or is not known' },
  'machine.unreachable': { fault: 'stopped', title: 'A machine cannot be reached' },
  'server.not-launched': { fault: 'environment', title: 'What the machine has does not allow the launch' },
  'server.did-not-start': { fault: 'engine', title: 'The server did not start' },
  'server.unreachable': { fault: 'engine', title: 'The server cannot be reached' },
  'server.rejects': { fault: 'engine', title: 'The server refuses every request' },
  'server.gave-up': { fault: 'stopped', title: 'The server stayed away and recovery was given up' },
  'run.interrupted': { fault: 'interrupted', title: 'Interrupted by Ctrl-C' },
  'run.terminated': { fault: 'terminated', title: 'Terminated' },
  'run.cut-off': { fault: 'stopped', title: 'The worker of a run ended without a word' },
  'bug.invariant': { fault: 'bug', title: 'Aerie broke one of its own rules' },
} as const satisfies Readonly<Record<string, { fault: Fault; title: string }>>;

export type ErrorCode = keyof typeof ERRORS;

export interface ErrorDetail {
  /** The cause, only if it is known; else what is known and what was looked at. */
  readonly because?: string;
  /** What to type or change, safest first. May hold several lines. */
  readonly remedy: string;
  /** Quoted evidence, one line each, with its place. */
  readonly evidence?: readonly string[];
  /** Machine-readable numbers behind the message. Never a secret. */
  readonly facts?: Readonly<Record<string, string | number | boolean>>;
}

export class AerieError extends Error {
  readonly code: ErrorCode;
  readonly detail: ErrorDetail;

  constructor(code: ErrorCode, message: string, detail: ErrorDetail, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'AerieError';
    this.code = code;
    this.detail = detail;
  }

  get fault(): Fault {
    return ERRORS[this.code].fault;
  }

  get exitCode(): number {
    return EXIT_CODE[this.fault];
  }
}

/** A machine behind ssh could not be asked: what runs there is not known. */
export function isOutOfReach(thrown: unknown): thrown is AerieError {
  return thrown instanceof AerieError && (thrown.code === 'machine.unreachable' || thrown.code === 'machine.refused');
}

/** An invariant of Aerie's own did not hold: stop, never log and go on. */
export function bug(message: string, facts: Readonly<Record<string, string | number | boolean>> = {}): AerieError {
  return new AerieError('bug.invariant', message, {
    remedy: 'Please report it with the lines above. What is committed on disk is safe; the same command resumes.',
    facts,
  });
}

/** The system's error code (`ENOSPC`, `ECONNREFUSED`, `UND_ERR_SOCKET` …) of anything thrown, or ''. */
export function systemCodeOf(thrown: unknown): string {
  if (typeof thrown === 'object' && thrown !== null && 'code' in thrown && typeof thrown.code === 'string') return thrown.code;
  return '';
}

/** Which of the disk's three errors a system code means, or undefined where it is not about a disk at all. */
export function diskCodeOf(systemCode: string): 'disk.full' | 'disk.read-only' | 'disk.failed' | undefined {
  if (systemCode === 'ENOSPC' || systemCode === 'EDQUOT') return 'disk.full';
  if (systemCode === 'EACCES' || systemCode === 'EPERM' || systemCode === 'EROFS') return 'disk.read-only';
  // ERR_… are Node's own: a wrong call, not a wrong disk.
  return /^E[A-Z0-9]+$/.test(systemCode) ? 'disk.failed' : undefined;
}
