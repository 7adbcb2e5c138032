/**
 * The command line from arguments to exit code. Loads only the command table; each command loads what it needs.
 * stdout is the answer, stderr is the conversation. What stricli says about wrong flags becomes exit code 2, and one
 * JSON document where --json was asked for.
 */
import { ExitCode, run } from '@stricli/core';
import { AerieError, bug, systemCodeOf } from '../base/errors.ts';
import { application, isCommand } from './application.ts';
import type { CliContext, MakeHost } from './cli-context.ts';
import { explainLostAnswer } from './lost-answer.ts';
import { renderErrorJson } from './render/error-json.ts';

export async function runCli(process: NodeJS.Process, makeHost: MakeHost): Promise<void> {
  const args = process.argv.slice(2);
  const wantsJson = args.includes('--json');
  // A closed pipe or a terminal that went away must not kill a run: the run folder has everything.
  process.stderr.on('error', () => undefined);
  let hasSaid = false; // each write may fail anew
  process.stdout.on('error', (thrown) => {
    if (hasSaid) return;
    const lost = explainLostAnswer(systemCodeOf(thrown), process.stdout.isTTY);
    // Of a run the exit code says how the run ended; its folder has what stdout has not.
    if (lost === undefined || (args[0] === 'run' && !wantsJson)) return;
    hasSaid = true;
    process.exitCode ||= lost.exitCode;
    void import('./render/error-text.ts').then(({ renderErrorText }) =>
      process.stderr.write(renderErrorText(lost, process.stderr.isTTY)),
    );
  });
  const said: string[] = [];
  const stderr = {
    write: (text: string) => {
      said.push(text);
      return true;
    },
    getColorDepth: () => 1,
  };
  const context: CliContext = {
    process: { stdout: process.stdout, stderr, env: process.env, exitCode: null },
    node: process,
    makeHost,
  };
  await run(application, args.length === 0 ? ['--help'] : args, context);
  const code = Number(context.process.exitCode ?? 0);
  // A command of ours has set process.exitCode itself; any other code but 0 is stricli's own.
  if (code === ExitCode.Success) return;
  const isUsage = code === ExitCode.InvalidArgument || code === ExitCode.UnknownCommand;
  const saying = said.join('').trim();
  const error = isUsage
    ? new AerieError('usage.flag', withStop(saying), { remedy: `${helpFor(args)}    Nothing was started.` })
    : bug(`A command could not be run. ${saying}`);
  process.exitCode = error.exitCode;
  if (wantsJson) process.stdout.write(renderErrorJson(error));
  else process.stderr.write((await import('./render/error-text.ts')).renderErrorText(error, process.stderr.isTTY));
}

/** The help of the command that was meant, or of all of them. */
function helpFor([command = '']: readonly string[]): string {
  return isCommand(command) ? `aerie ${command} --help` : 'aerie --help';
}

function withStop(saying: string): string {
  // stricli names a flag as the code does; people type it as the help shows it.
  const line = saying
    .replace(/\s+/g, ' ')
    .replace(/--[a-zA-Z]+/g, (flag) => flag.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`));
  return /[.?!]$/.test(line) ? line : `${line}.`;
}
