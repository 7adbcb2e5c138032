/** Commands that make records: run, preview, status. Loads nothing but stricli. */
import { buildCommand } from '@stricli/core';
import type { CliContext } from '../cli-context.ts';
import type { CommonFlags, RunFlags } from '../flags.ts';
import { json, killHolder, onRun, onFindings } from './parameters.ts';

export const runCommand = buildCommand<RunFlags, [string], CliContext>({
  loader: async () => (await import('../commands/run.ts')).run,
  parameters: {
    flags: {
      ...json,
      retryFailed: { kind: 'boolean', default: false, brief: 'Ask prompts again that were set aside or dropped' },
      redo: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief:
          'Ask finished prompts anew: findings of aerie check, or ids, with commas between; a record stays until its new one is there',
        placeholder: 'FINDING|IDS',
      },
      ...onFindings,
      amend: {
        kind: 'boolean',
        default: false,
        brief: 'Record what the run file has otherwise than the run began, and go on in the new way',
      },
      strict: { kind: 'boolean', default: false, brief: 'Stop at the first input row that is refused, with its line and reason' },
      killHolder,
    },
    positional: onRun,
  },
  docs: {
    brief: 'Generate until every partition is done; the same command resumes',
    fullDescription:
      'Generates answers for every prompt of the run file and writes exact records. Ctrl-C finishes what is in flight; ' +
      'a second one gives it up. After any stop, even kill -9, the same command resumes.\n\nExample: aerie run run.yaml',
  },
});

export const previewCommand = buildCommand<CommonFlags, [string], CliContext>({
  loader: async () => (await import('../commands/preview.ts')).preview,
  parameters: { flags: json, positional: onRun },
  docs: {
    brief: 'Make 10 records to look at, and say whether records will be exact',
    fullDescription:
      'Asks the run’s servers for at most 10 records, shows them, and keeps nothing.\n\nExample: aerie preview run.yaml',
  },
});

export const statusCommand = buildCommand<CommonFlags, [string], CliContext>({
  loader: async () => (await import('../commands/status.ts')).status,
  parameters: { flags: json, positional: onRun },
  docs: {
    brief: 'What is done, set aside and refused, also while a run is working',
    fullDescription: 'Reads only.\n\nExample: aerie status runs/quickstart',
  },
});
