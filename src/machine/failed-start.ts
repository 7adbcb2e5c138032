/** What a person is told when a launch script did not come to its program. Pure. */
import { dirname } from 'node:path/posix';
import { AerieError } from '../base/errors.ts';
import type { LaunchReport } from './launch-script.ts';
import type { DetachedStart } from './machine.ts';

/** Lines of output that are quoted. */
const LINES = 10;

export function describeFailedStart(
  request: Pick<DetachedStart, 'setup' | 'workFolder' | 'logPath' | 'statusPath'>,
  report: Exclude<LaunchReport, { kind: 'started' }>,
  output: string,
): AerieError {
  const { message, remedy } = wordsFor(request, report);
  const evidence = output
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '')
    .slice(-LINES);
  const facts = report.kind === 'silent' ? {} : { step: report.step, exitStatus: report.exitStatus };
  return new AerieError('server.did-not-start', message, {
    remedy: `${remedy} The command of the server was not run.`,
    evidence,
    facts,
  });
}

function wordsFor(
  { setup, workFolder, logPath, statusPath }: Pick<DetachedStart, 'setup' | 'workFolder' | 'logPath' | 'statusPath'>,
  report: Exclude<LaunchReport, { kind: 'started' }>,
): { readonly message: string; readonly remedy: string } {
  if (report.kind === 'silent')
    return {
      message: 'The shell that should start the server ended without a word.',
      remedy: 'Look for a quote that is not closed in setup: or command:, and for what ended the shell.',
    };
  switch (report.step) {
    case 'log':
      return { message: `The log of the server cannot be written: ${logPath}`, remedy: 'Correct log:, or free the place.' };
    case 'claim':
      return {
        message: `The launch cannot be claimed: no folder can be made in ${dirname(statusPath)}`,
        remedy: 'Free the place, or make it writable.',
      };
    case 'claimed':
      return {
        message: 'The launch came too late: somebody has looked for it meanwhile and taken it for one that will not come.',
        remedy: 'Give the same command again.',
      };
    case 'folder':
      return { message: `The work folder of the server cannot be entered: ${workFolder}`, remedy: 'Correct workdir:.' };
    case 'setup': {
      const line = setup[report.setupLine] ?? '';
      return {
        message: `Setup line ${report.setupLine + 1} ended with exit status ${report.exitStatus}: ${line}`,
        remedy: `Correct the line in setup:, or try it in a shell in ${workFolder}.`,
      };
    }
  }
}
