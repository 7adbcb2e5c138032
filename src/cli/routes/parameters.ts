/** Flags and arguments that several commands take. Loads nothing but stricli. */
import type { FlagParametersForType } from '@stricli/core';
import type { CliContext } from '../cli-context.ts';
import type { CommonFlags } from '../flags.ts';

export const json: FlagParametersForType<CommonFlags, CliContext> = {
  json: { kind: 'boolean', brief: 'Print one JSON document on stdout', default: false },
};

const RUN = { parse: String, brief: 'A run file, or the folder runs/NAME beside it', placeholder: 'RUN' } as const;
export const onRun = { kind: 'tuple', parameters: [RUN] } as const;

function parseTokens(text: string): number {
  if (!/^[1-9][0-9]{0,8}$/.test(text)) throw new SyntaxError(`'${text}' is not a number of tokens, like 8192`);
  return Number(text);
}

/** What findings depend on, for check and for what leaves records out or makes them anew by them. */
export const onFindings = {
  maxLength: {
    kind: 'parsed',
    parse: parseTokens,
    optional: true,
    brief: 'Tokens at which the trainer cuts rows; default 8192',
    placeholder: 'N',
  },
  benchmarks: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Prompts that must not be among the run’s: JSON lines, or text with one on each line',
    placeholder: 'FILE',
  },
} as const;

export const text = (brief: string, placeholder: string) =>
  ({ kind: 'parsed', parse: String, optional: true, brief, placeholder }) as const;
export const number = (brief: string) =>
  ({ kind: 'parsed', parse: parsePositive, optional: true, brief, placeholder: 'N' }) as const;

function parsePositive(written: string): number {
  const value = Number(written);
  if (!(value > 0 && Number.isFinite(value))) throw new SyntaxError(`'${written}' is not a number above 0`);
  return value;
}

/** The one process that a person names; nothing else that Aerie did not start is ever ended. */
export const killHolder = {
  kind: 'parsed',
  parse: parsePid,
  optional: true,
  brief: 'End this process if it holds GPU memory that a launch needs, whoever started it',
  placeholder: 'PID',
} as const;

function parsePid(written: string): number {
  if (!/^[1-9][0-9]{0,9}$/.test(written) || written === '1') throw new SyntaxError(`'${written}' is not the pid of a process`);
  return Number(written);
}
