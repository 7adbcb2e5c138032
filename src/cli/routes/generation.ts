/** Commands that make records: run, stop, preview, status. Loads nothing but stricli. */
import { buildCommand } from '@stricli/core';
import type { CliContext } from '../cli-context.ts';
import type { CommonFlags, RehearseFlags, RunFlags, StatusFlags, StopFlags } from '../flags.ts';
import { json, killHolder, number, onFindings, onRun, text } from './parameters.ts';

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
      detach: {
        kind: 'boolean',
        default: false,
        brief: 'Go on without this terminal; returns when the worker works, and says how to look and how to stop it',
      },
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

export const stopCommand = buildCommand<StopFlags, [string], CliContext>({
  loader: async () => (await import('../commands/stop.ts')).stop,
  parameters: {
    flags: {
      ...json,
      now: { kind: 'boolean', default: false, brief: 'Give up what is in flight instead of finishing it' },
    },
    positional: onRun,
  },
  docs: {
    brief: 'End the worker of a run safely, wherever it was started; the run resumes with aerie run',
    fullDescription:
      'As Ctrl-C in its terminal: what is in flight is finished and committed. Waits for it; Ctrl-C ends the waiting alone. ' +
      'Launched servers go on: aerie server stop ends them.\n\nExample: aerie stop run.yaml',
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

export const rehearseCommand = buildCommand<RehearseFlags, [string], CliContext>({
  loader: async () => (await import('../commands/rehearse.ts')).rehearse,
  parameters: {
    flags: {
      ...json,
      prompts: number('Most prompts that are asked, over all partitions; default 200'),
      rate: number('How many times faster than the world; default 60'),
      lengths: text('Length of answers, as lognormal:mean=4000,sigma=0.8', 'LENGTHS'),
      scenario: text('Faults and facts of the machine, as docs/lookalike.md has them', 'FILE.json'),
    },
    positional: onRun,
  },
  docs: {
    brief:
      'Play the run with lookalike servers on a fast clock, before GPU hours are bought; exit code 1 when it does not go through',
    fullDescription:
      'Launches, dies, recovers and generates as aerie run does, with the run file’s own flags and no GPU. Keeps nothing and does not touch the run.\n\n' +
      'Example: aerie rehearse run.yaml',
  },
});

export const statusCommand = buildCommand<StatusFlags, [string], CliContext>({
  loader: async () => (await import('../commands/status.ts')).status,
  parameters: {
    flags: {
      ...json,
      follow: {
        kind: 'boolean',
        default: false,
        brief: 'Watch the worker until it ends; the exit code is that of the run, Ctrl-C ends the watching alone',
      },
    },
    positional: onRun,
  },
  docs: {
    brief: 'What is done, set aside and refused, also while a run is working',
    fullDescription: 'Reads only.\n\nExample: aerie status runs/quickstart',
  },
});
