/** `aerie server …`: the servers that Aerie launches. Loads nothing but stricli. */
import { buildCommand, buildRouteMap } from '@stricli/core';
import type { CliContext } from '../cli-context.ts';
import type { ServerFlags, ServerLogsFlags, ServerStartFlags } from '../flags.ts';
import { json, killHolder, onRun, text } from './parameters.ts';

const server = text('One server of the run file; left out: all that Aerie launches', 'NAME');

const startCommand = buildCommand<ServerStartFlags, [string], CliContext>({
  loader: async () => (await import('../commands/server.ts')).start,
  parameters: { flags: { ...json, server, killHolder }, positional: onRun },
  docs: {
    brief: 'Launch the servers of a run file, or find them again, and verify them',
    fullDescription:
      'Returns when each is ready. They go on when the command has ended: aerie run uses them, aerie server stop ends them. ' +
      'Ctrl-C stops the waiting and not the loading.\n\nExample: aerie server start run.yaml',
  },
});

const verifyCommand = buildCommand<ServerFlags, [string], CliContext>({
  loader: async () => (await import('../commands/server.ts')).verify,
  parameters: { flags: { ...json, server }, positional: onRun },
  docs: {
    brief: 'What the launched servers really are, and whether every rule is kept; exit code 1 when not',
    fullDescription: 'One look; changes nothing, also while a run is working.\n\nExample: aerie server verify run.yaml',
  },
});

const stopCommand = buildCommand<ServerFlags, [string], CliContext>({
  loader: async () => (await import('../commands/server.ts')).stop,
  parameters: { flags: { ...json, server }, positional: onRun },
  docs: {
    brief: 'End the launched servers and wait until GPU memory is free; exit code 1 when something is left',
    fullDescription: 'Ends only what Aerie launched, by its recorded identity.\n\nExample: aerie server stop run.yaml',
  },
});

const logsCommand = buildCommand<ServerLogsFlags, [string], CliContext>({
  loader: async () => (await import('../commands/server.ts')).logs,
  parameters: {
    flags: {
      server: text('Which server, where the run file launches several', 'NAME'),
      launch: { kind: 'parsed', parse: parseCount, optional: true, brief: 'Which launch; default the newest', placeholder: 'N' },
      lines: { kind: 'parsed', parse: parseCount, optional: true, brief: 'Only the last lines; default all', placeholder: 'N' },
      follow: { kind: 'boolean', default: false, brief: 'Go on until Ctrl-C' },
    },
    positional: onRun,
  },
  docs: {
    brief: 'The log of a launch, as the server wrote it',
    fullDescription: 'Example: aerie server logs run.yaml --lines 50 --follow',
  },
});

export const serverCommands = buildRouteMap({
  routes: { start: startCommand, verify: verifyCommand, stop: stopCommand, logs: logsCommand },
  docs: { brief: 'Launch, verify and stop the servers of a run file' },
});

function parseCount(written: string): number {
  if (!/^[1-9][0-9]{0,8}$/.test(written)) throw new SyntaxError(`'${written}' is not a whole number from 1 up`);
  return Number(written);
}
