/** Why a server is asked nothing more, as the operator's error. Pure. */
import { AerieError } from '../base/errors.ts';

interface GivenUp {
  readonly name: string;
  readonly attach: string | undefined;
  readonly because: string;
  readonly wasReady: boolean;
  readonly evidence: readonly string[];
}

export function gaveUp({ name, attach, because, wasReady, evidence }: GivenUp): AerieError {
  if (!wasReady) {
    const where = attach === undefined ? '' : ` at ${attach}`;
    return new AerieError('server.unreachable', `${name}${where} never became ready: ${because}.`, {
      remedy: 'Start the server, or correct attach: in the run file. Nothing was lost; the same command resumes.',
      facts: attach === undefined ? {} : { attach },
    });
  }
  return new AerieError('server.gave-up', `${name} is given up: ${because}.`, {
    remedy: 'What is committed is safe. Look at the server, then run the same command again: it resumes.',
    evidence,
  });
}

export function asAerieError(thrown: unknown, name: string): AerieError {
  if (thrown instanceof AerieError) return thrown;
  return new AerieError(
    'server.did-not-start',
    `${name} could not be started: ${thrown instanceof Error ? thrown.message : String(thrown)}.`,
    { remedy: 'Nothing was lost; the same command resumes.' },
    thrown,
  );
}

/** It ended before it was ready for the first time, and the same start would end so again. */
export function didNotStart(
  name: string,
  how: string,
  at: { readonly logPath: string; readonly evidence: readonly string[] },
): AerieError {
  return new AerieError('server.did-not-start', `${name} ended before it was ready: ${how}.`, {
    remedy: `Read ${at.logPath}; nothing was lost, the same command resumes.`,
    evidence: at.evidence,
  });
}
