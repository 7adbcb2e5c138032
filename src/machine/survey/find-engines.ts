/**
 * Which processes are servers of an engine, told by their command lines. Pure. A shell, a container client or an editor that has
 * the words in its arguments is none, and of a server's own copies of itself only the first counts.
 */
import type { ProcessTable } from './processes.ts';

export interface EngineProcess {
  readonly pid: number;
  readonly engine: 'sglang' | 'vllm';
  readonly command: string;
  readonly port: number;
  /** Where it can be asked on its machine. */
  readonly address: string;
  readonly model: string;
}

/** What the engines take without `--port`. */
const PORTS = { sglang: 30_000, vllm: 8_000 } as const;

export function findEngines(table: ProcessTable): EngineProcess[] {
  const found = [...table.values()].flatMap(({ pid, parent, argv, command }) => {
    const engine = readEngine(argv);
    return engine === undefined ? [] : [{ ...engine, pid, parent, command }];
  });
  const pids = new Set(found.map(({ pid }) => pid));
  return found.filter(({ parent }) => !pids.has(parent)).map(({ parent: _parent, ...one }) => one);
}

/** undefined: no server of an engine. */
export function readEngine(argv: readonly string[]): Omit<EngineProcess, 'pid' | 'command'> | undefined {
  const started = engineOf(argv);
  if (started === undefined) return undefined;
  const { engine, flags } = started;
  const port = Number(flagValue(flags, ['port']) ?? PORTS[engine]);
  const host = flagValue(flags, ['host']) ?? '';
  const isEverywhere = ['', '0.0.0.0', '::', 'localhost', '*'].includes(host);
  const model = flagValue(flags, ['model-path', 'model', 'model_path']) ?? firstWord(flags) ?? '';
  return {
    engine,
    port: Number.isInteger(port) && port > 0 && port < 65_536 ? port : PORTS[engine],
    address: isEverywhere ? '127.0.0.1' : host,
    model,
  };
}

interface Started {
  readonly engine: 'sglang' | 'vllm';
  readonly flags: readonly string[];
}

function engineOf(argv: readonly string[]): Started | undefined {
  const [program = '', ...rest] = argv;
  const name = baseOf(program);
  if (name === 'sglang' || name === 'vllm') return serving(name, rest);
  if (name === 'node' || name === 'nodejs') return lookalikeOf(rest);
  if (!/^(python|pypy)[\d.]*$/.test(name)) return undefined;
  const module = rest.indexOf('-m');
  const script = rest.findIndex((word) => !word.startsWith('-'));
  if (module >= 0 && (script < 0 || module <= script)) {
    const flags = rest.slice(module + 2);
    const what = rest[module + 1] ?? '';
    if (what === 'sglang.launch_server') return { engine: 'sglang', flags };
    if (/^vllm\.entrypoints\.(openai\.api_server|api_server|cli\.main)$/.test(what)) return { engine: 'vllm', flags };
    return undefined;
  }
  const path = rest[script] ?? '';
  const flags = rest.slice(script + 1);
  if (/(^|\/)sglang\/launch_server\.py$/.test(path)) return { engine: 'sglang', flags };
  if (/(^|\/)vllm\/entrypoints\/openai\/api_server\.py$/.test(path)) return { engine: 'vllm', flags };
  const console = baseOf(path);
  return console === 'sglang' || console === 'vllm' ? serving(console, flags) : undefined;
}

function serving(engine: 'sglang' | 'vllm', words: readonly string[]): Started | undefined {
  return words[0] === 'serve' ? { engine, flags: words.slice(1) } : undefined;
}

/** The lookalike engine as a launcher: the real flags stand behind `--`. Without `--as` it answers as vLLM does. */
function lookalikeOf(words: readonly string[]): Started | undefined {
  const script = words.findIndex((word) => baseOf(word) === 'lookalike-engine.js');
  if (script < 0) return undefined;
  const own = words.slice(script + 1);
  const as = flagValue(own, ['as']) ?? '';
  const dashes = own.indexOf('--');
  return { engine: as.startsWith('sglang') ? 'sglang' : 'vllm', flags: dashes < 0 ? own : own.slice(dashes + 1) };
}

function flagValue(words: readonly string[], names: readonly string[]): string | undefined {
  for (const name of names) {
    const at = words.findLastIndex((word) => word === `--${name}` || word.startsWith(`--${name}=`));
    if (at < 0) continue;
    const word = words[at] ?? '';
    return word.includes('=') ? word.slice(word.indexOf('=') + 1) : words[at + 1];
  }
  return undefined;
}

/** `vllm serve MODEL`. */
function firstWord(words: readonly string[]): string | undefined {
  return words[0] === undefined || words[0].startsWith('-') ? undefined : words[0];
}

function baseOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
