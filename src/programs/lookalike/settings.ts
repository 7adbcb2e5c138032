/** The command line of the lookalike → values. Throws `usage.flag` with what to type. */
import { parseArgs } from 'node:util';
import { AerieError } from '../../base/errors.ts';

export interface Settings {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  /** '' = none. */
  readonly portFile: string;
  readonly scenario: string;
  readonly journal: string;
  readonly clockRate: number;
  readonly lifeline: boolean;
  readonly servedModelName: string;
  readonly maxModelLen: number;
  readonly seed: number;
}

export const USAGE = `node dist/programs/lookalike-engine.js --port N [--host 127.0.0.1] [--port-file FILE] [--scenario FILE]
         [--clock-rate X] [--journal FILE] [--lifeline] [--served-model-name NAME] [--max-model-len N] [--seed N]`;

const text = (value: string) => ({ type: 'string', default: value }) as const;

const FLAGS = {
  host: text('127.0.0.1'),
  port: text(''),
  'port-file': text(''),
  scenario: text(''),
  journal: text(''),
  'clock-rate': text('1'),
  lifeline: { type: 'boolean', default: false },
  'served-model-name': text('lookalike'),
  'max-model-len': text('32768'),
  seed: text('0'),
} as const;

export function parseSettings(args: readonly string[]): Settings {
  const values = parseFlags(args);
  return {
    host: values.host,
    port: parseWhole('port', values.port, 0, 65_535),
    portFile: values['port-file'],
    scenario: values.scenario,
    journal: values.journal,
    clockRate: parseRate(values['clock-rate']),
    lifeline: values.lifeline,
    servedModelName: values['served-model-name'],
    maxModelLen: parseWhole('max-model-len', values['max-model-len'], 1, 2 ** 31 - 1),
    seed: parseWhole('seed', values.seed, 0, 2 ** 31 - 1), // seeds are signed 32-bit numbers in vLLM and SGLang
  };
}

function parseFlags(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: FLAGS, strict: true, allowPositionals: false }).values;
  } catch (thrown) {
    throw wrong(thrown instanceof Error ? thrown.message : String(thrown));
  }
}

function parseWhole(flag: string, given: string, least: number, most: number): number {
  const value = Number(given);
  if (/^\d+$/.test(given) && value >= least && value <= most) return value;
  throw wrong(given === '' ? `--${flag} is needed.` : `--${flag} ${given} is not a whole number from ${least} to ${most}.`);
}

function parseRate(given: string): number {
  const value = Number(given);
  if (given !== '' && Number.isFinite(value) && value > 0) return value;
  throw wrong(`--clock-rate ${given} is not a number above 0.`);
}

function wrong(message: string): AerieError {
  return new AerieError('usage.flag', message, { remedy: USAGE });
}
