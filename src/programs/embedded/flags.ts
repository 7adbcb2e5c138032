/**
 * The command line of the embedded engine → typed settings. Pure but for the number of cores, which is passed in.
 * A wrong command line throws `FlagError`, whose message says what to type; the program then exits with 2.
 */
import { parseArgs } from 'node:util';

export const KV_TYPES = ['f16', 'q8_0'] as const;
export type KvType = (typeof KV_TYPES)[number];

export interface EngineFlags {
  readonly modelPath: string;
  readonly servedModelName: string;
  readonly revision: string;
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  /** '' = none. */
  readonly portFile: string;
  readonly sequences: number;
  /** Most tokens of prompt + answer in one sequence. */
  readonly contextTokens: number;
  readonly kvType: KvType;
  readonly threads: number;
  /** Exit as soon as stdin closes. */
  readonly lifeline: boolean;
}

export const USAGE = `usage: embedded-engine --model PATH.gguf [flags]
  --served-model-name NAME   name in requests and replies (default: the file's name)
  --revision TEXT            told in /server_info
  --host ADDRESS             default 127.0.0.1
  --port N                   default 0: any free port
  --port-file FILE           gets the port once the server listens
  --sequences N              requests worked on at once (default 8)
  --context N                tokens of one sequence, prompt and answer together (default 2048)
  --kv-type f16|q8_0         element type of the KV cache (default f16)
  --threads N                default: half the cores, 1 to 8
  --lifeline                 exit when stdin closes`;

export class FlagError extends Error {
  constructor(message: string) {
    super(`${message}\n${USAGE}`);
    this.name = 'FlagError';
  }
}

const OPTIONS = {
  model: { type: 'string' },
  'served-model-name': { type: 'string' },
  revision: { type: 'string', default: '' },
  host: { type: 'string', default: '127.0.0.1' },
  port: { type: 'string', default: '0' },
  'port-file': { type: 'string', default: '' },
  sequences: { type: 'string', default: '8' }, // batching past 8 gains little on a few cores, and each costs its context in memory
  context: { type: 'string', default: '2048' }, // room for a few turns; SmolLM2 keeps 23 KB per token, so 8 × 2,048 take 377 MB
  'kv-type': { type: 'string', default: 'f16' },
  threads: { type: 'string' },
  lifeline: { type: 'boolean', default: false },
} as const;

export function parseFlags(args: readonly string[], cores: number): EngineFlags {
  const values = parseStrictly(args);
  if (values.model === undefined || values.model === '') throw new FlagError('--model is missing: type --model PATH.gguf');
  const kvType = KV_TYPES.find((type) => type === values['kv-type']);
  if (kvType === undefined) {
    throw new FlagError(
      `--kv-type ${values['kv-type']} is not known: type ${KV_TYPES.map((type) => `--kv-type ${type}`).join(' or ')}`,
    );
  }
  return {
    modelPath: values.model,
    servedModelName: values['served-model-name'] ?? fileStem(values.model),
    revision: values.revision,
    host: values.host,
    port: wholeNumber('port', values.port, 0, 65_535),
    portFile: values['port-file'],
    sequences: wholeNumber('sequences', values.sequences, 1, 256), // 256 is llama.cpp's own limit
    contextTokens: wholeNumber('context', values.context, 16, 1_048_576),
    kvType,
    threads: values.threads === undefined ? defaultThreads(cores) : wholeNumber('threads', values.threads, 1, 512),
    lifeline: values.lifeline,
  };
}

/**
 * The thread count when none is given: half the cores, from 1 to 8 (`docs/benchmarks.md` has the measurement). llama.cpp's
 * threads wait for each other at every layer, so one that loses its core stalls all of them: two threads on two busy cores were
 * slower than one. Half leaves room for the rest, and is the number of physical cores where each counts twice; one step
 * of a model small enough for this engine is too short to share among more than 8.
 */
export function defaultThreads(cores: number): number {
  return Math.max(1, Math.min(8, Math.floor(cores / 2)));
}

function parseStrictly(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, strict: true, allowPositionals: false }).values;
  } catch (thrown) {
    throw new FlagError(thrown instanceof Error ? thrown.message : String(thrown));
  }
}

function wholeNumber(flag: string, text: string, least: number, most: number): number {
  const value = Number(text);
  if (text.trim() === '' || !Number.isInteger(value) || value < least || value > most) {
    throw new FlagError(`--${flag} ${text} is not a whole number from ${least} to ${most}`);
  }
  return value;
}

function fileStem(path: string): string {
  return (path.split(/[\\/]/).at(-1) ?? path).replace(/\.gguf$/i, '');
}
