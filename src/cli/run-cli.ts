/**
 * The command line from arguments to exit code. Loads only the command table; each command loads what it needs.
 * stdout is the answer, stderr is the conversation. What stricli says about wrong flags becomes exit code 2, and one
 * JSON document where --json was asked for.
 */
import { run } from '@stricli/core';
import { application } from './application.ts';
import type { CliContext, MakeHost } from './cli-context.ts';
import { renderErrorJson } from './render/error-json.ts';

export async function runCli(process: NodeJS.Process, makeHost: MakeHost): Promise<void> {
  // A closed pipe or a terminal that went away must not kill a run: the run folder has everything.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  const args = process.argv.slice(2);
  const wantsJson = args.includes('--json');
  const said: string[] = [];
  const stderr = {
    write: (text: string) => {
      said.push(text);
      if (!wantsJson) process.stderr.write(text);
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
  // Negative codes are stricli's own: an unknown command, a wrong flag. A command of ours has set process.exitCode itself.
  if (code >= 0) return;
  process.exitCode = 2;
  if (!wantsJson) return;
  const message = said.join('').trim().replace(/\s+/g, ' ');
  process.stdout.write(renderErrorJson({ code: 'usage.flag', message, because: '', remedy: 'aerie --help', facts: {} }));
}
