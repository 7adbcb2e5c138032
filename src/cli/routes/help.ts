/** Commands that help a person along: init, doctor, explain. Loads nothing but stricli. */
import { buildCommand } from '@stricli/core';
import type { CliContext } from '../cli-context.ts';
import type { CommonFlags, InitFlags } from '../flags.ts';
import { json } from './parameters.ts';

export const initCommand = buildCommand<InitFlags, [string?], CliContext>({
  loader: async () => (await import('../commands/init.ts')).init,
  parameters: {
    flags: {
      ...json,
      from: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'File with the prompts: .jsonl, .json, .csv (each also .gz), .parquet',
        placeholder: 'FILE',
      },
      run: { kind: 'parsed', parse: String, optional: true, brief: 'Name of the run', placeholder: 'NAME' },
      engine: {
        kind: 'enum',
        values: ['vllm', 'sglang', 'openai'],
        optional: true,
        brief: 'Which engine; default with --attach: vllm, with --machine: sglang',
      },
      attach: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief:
          'A server that is already there: http://HOST:PORT or ssh://BOX:PORT; default http://127.0.0.1, port 8000 of vllm or 30000 of sglang',
        placeholder: 'URL',
      },
      machine: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Launch the engine on this machine, as you type it after ssh',
        placeholder: 'NAME',
      },
      model: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Model as the server knows it, or OWNER/NAME to launch; default: a small one',
        placeholder: 'NAME',
      },
      force: { kind: 'boolean', default: false, brief: 'Replace a run file that is already there' },
    },
    positional: {
      kind: 'tuple',
      parameters: [{ parse: String, brief: 'Run file to write; default run.yaml', placeholder: 'FILE', optional: true }],
    },
  },
  docs: {
    brief: 'Write a commented run file',
    fullDescription:
      'Asks what it needs on a terminal; elsewhere give flags.\n\nExample: aerie init --from prompts.jsonl\nExample: aerie init --from prompts.jsonl --machine gpu-box --model Qwen/Qwen3-8B',
  },
});

export const doctorCommand = buildCommand<CommonFlags, [string?], CliContext>({
  loader: async () => (await import('../commands/doctor.ts')).doctor,
  parameters: {
    flags: json,
    positional: {
      kind: 'tuple',
      parameters: [
        {
          parse: String,
          brief: 'A folder, run file or run folder; left out: this folder',
          placeholder: 'FOLDER|RUN',
          optional: true,
        },
      ],
    },
  },
  docs: {
    brief: 'Measure this machine and the disk of the run folder; exit code 1 when something fails',
    fullDescription:
      'Node, memory, open files, file system, space, fsync, locking, the embedded engine, models, pip. Keeps nothing.\n\nExample: aerie doctor run.yaml',
  },
});

export const explainCommand = buildCommand<CommonFlags, [string?], CliContext>({
  loader: async () => (await import('../commands/explain.ts')).explain,
  parameters: {
    flags: json,
    positional: {
      kind: 'tuple',
      parameters: [{ parse: String, brief: 'A code from a message; left out: all of them', placeholder: 'CODE', optional: true }],
    },
  },
  docs: {
    brief: 'What a code of a message means, where to look, what to do',
    fullDescription:
      'Knows the codes of errors, of the findings of check, and of refused rows.\n\nExample: aerie explain disk.full',
  },
});
