/**
 * All texts that are looked for in a log, and whose they are. Built once from the rules, the phases and the log grammars. Pure data.
 */
import { AnchorSet } from './anchor-set.ts';
import { COMPILING, MARKERS, type Marker } from './phases.ts';
import type { Rule } from './rule.ts';
import { RULES } from './rules/all.ts';
import { DEATHS } from './rules/endings.ts';
import { FRAMES } from './rules/frames.ts';
import { bareText, type CompiledSign, compileSign, type Sign } from './sign.ts';
import type { Phase } from './verdict.ts';

/** Lines that `LogFactsReader` reads figures from. */
const FIGURES = [
  'ServerArgs(',
  'LLM API server version',
  'non-default args',
  'LLM engine (v',
  'Load weight begin',
  'Load weight end',
  'checkpoint shards:',
  'Multi-thread loading shards',
  'Using KV cache dtype',
  'Setting KV cache dtype to',
  'overrides KV cache dtype',
  'Using FP8 KV cache but no scaling factors',
  'data type to store kv cache',
  'Using KV cache scaling factor',
  'KV Cache is allocated',
  'GB host memory',
  'Memory pool end',
  'Capturing batches',
  'cuda graph begin',
  'cuda graph end',
  'max_total_num_tokens=',
  'fired up and ready',
  'Retract requests',
  'Decode out of memory happened',
  'Model loading took',
  'Available KV cache memory',
  'GPU KV cache size',
  '# GPU blocks',
  '# cuda blocks',
  'Maximum concurrency for',
  'Capturing CUDA graphs',
  'Capturing cudagraph',
  'Graph capturing finished',
  'Application startup complete',
];
/** Lines that a server at work prints over and over: these are sampled. */
const WORK = ['Decode batch', 'Prefill batch', 'Avg generation throughput'];
const NOTICE = 'No available shared memory broadcast block found';
const NODES = [
  'nnodes=',
  '--nnodes',
  'nNodes ',
  '--node-rank',
  'dist_init_addr=',
  '--dist-init-addr',
  "nnodes': ",
  'spans across nodes',
];
/** An answer to a request; GET is only ever asked by probes and by people who look. */
const ANSWERS = ['"POST /', '"GET /health'];
/** Lines that are there because someone looked: a dead server's front end goes on writing them. */
const PROBES = ['"GET /', "Health check failed. Server couldn't get a response from detokenizer"];

export function isProbeLine(text: string): boolean {
  return PROBES.some((sign) => text.includes(sign));
}

/** Texts that stand in harmless lines only; a log that holds them is an engine's or its framework's. */
const HARMLESS = [
  'Ignore import error',
  'is over 95% full',
  'UserWarning:',
  'FutureWarning:',
  'destroy_process_group() was not called',
];
/** NCCL has begun to set up. */
const NCCL = [
  'is using nccl==',
  'NCCL INFO',
  'NCCL version',
  'Init torch distributed begin',
  'Found nccl from library',
  'GPU P2P access cache',
];
/** A kernel's compilation is over. */
const COMPILED = ['Finished loading JIT ops', 'autotune completed', 'autotune... completed', 'Autotuning process ends'];
/** All ranks reached each other. */
const COMMUNICATORS = ['Init COMPLETE', 'Init torch distributed ends', 'Connected all rings', 'Connected all trees'];
/** The server was asked to end. */
const SHUTDOWN = ['SIGTERM received', 'Gracefully exiting', 'INFO:     Shutting down', 'Finished server process'];
const TRACEBACK = 'Traceback (most recent call last)';

/** Lines that are known by an anchor alone. */
type PlainKind =
  | 'figures'
  | 'work'
  | 'notice'
  | 'nodes'
  | 'answer'
  | 'compiling'
  | 'compiled'
  | 'harmless'
  | 'traceback'
  | 'communicators'
  | 'nccl'
  | 'shutdown'
  | 'preempted'
  | 'probe';

export type Watched =
  | { readonly kind: PlainKind }
  | { readonly kind: 'marker'; readonly marker: Marker; readonly sign: CompiledSign }
  | { readonly kind: 'death'; readonly sign: CompiledSign }
  | { readonly kind: 'sign'; readonly rule: CompiledRule; readonly sign: CompiledSign };

export interface CompiledRule {
  readonly rule: Rule;
  /** Its place in the table: the earlier rule wins a tie. */
  readonly place: number;
  readonly near: RegExp | undefined;
  readonly unless: RegExp | undefined;
  readonly unlessNear: RegExp | undefined;
}

export interface Watch {
  readonly anchors: AnchorSet;
  /** By the number of the anchor. */
  readonly watched: readonly (readonly Watched[])[];
  /** By the number of the anchor: a line that a server at work prints over and over. */
  readonly isRoutine: readonly boolean[];
  /** By the number of the anchor: after very many lines it says nothing new. */
  readonly canTire: readonly boolean[];
  /** Frames of tracebacks that say where it happened. */
  readonly frames: readonly { readonly phase: Phase; readonly pattern: RegExp }[];
}

/** The last line of these matters, however many there were. */
const COUNTS_TO_THE_END: ReadonlySet<Watched['kind']> = new Set(['figures', 'work', 'answer', 'notice', 'compiling']);

let built: Watch | undefined;

export function watch(): Watch {
  built ??= build();
  return built;
}

function build(): Watch {
  const byAnchor = new Map<string, Watched[]>();
  const add = (anchor: string, watched: Watched) => {
    const known = byAnchor.get(anchor);
    if (known === undefined) byAnchor.set(anchor, [watched]);
    else known.push(watched);
  };
  const plain = (texts: readonly string[], kind: PlainKind) => {
    for (const text of texts) add(bareText(text), { kind });
  };
  // First: a line is one of these whatever else it says.
  plain(PROBES, 'probe');
  plain(FIGURES, 'figures');
  plain(WORK, 'work');
  plain([NOTICE], 'notice');
  plain(NODES, 'nodes');
  plain(ANSWERS, 'answer');
  plain(COMPILING, 'compiling');
  plain(HARMLESS, 'harmless');
  plain([TRACEBACK], 'traceback');
  plain(COMMUNICATORS, 'communicators');
  plain(NCCL, 'nccl');
  plain(COMPILED, 'compiled');
  plain(SHUTDOWN, 'shutdown');
  plain(['is preempted by PreemptionMode'], 'preempted');
  for (const marker of MARKERS) for (const sign of marker.signs.map(compiled)) add(sign.anchor, { kind: 'marker', marker, sign });
  for (const sign of DEATHS.map(compiled)) add(sign.anchor, { kind: 'death', sign });
  RULES.forEach((rule, place) => {
    const whole = { rule, place, near: anyOf(rule.where?.near), unless: anyOf(rule.unless), unlessNear: anyOf(rule.unlessNear) };
    for (const sign of rule.signs.map(compiled)) add(sign.anchor, { kind: 'sign', rule: whole, sign });
  });
  const watched = [...byAnchor.values()];
  return {
    anchors: new AnchorSet([...byAnchor.keys()]),
    watched,
    isRoutine: watched.map((ones) => ones.every(({ kind }) => kind === 'work' || kind === 'answer')),
    canTire: watched.map((ones) => ones.every(({ kind }) => !COUNTS_TO_THE_END.has(kind))),
    frames: FRAMES.map(({ phase, texts }) => ({ phase, pattern: anyOf(texts) ?? /^\b$/ })),
  };
}

function compiled(sign: string | Sign): CompiledSign {
  return compileSign(typeof sign === 'string' ? { text: sign } : sign);
}

function anyOf(texts: readonly string[] | undefined): RegExp | undefined {
  if (texts === undefined || texts.length === 0) return undefined;
  return new RegExp(texts.map((text) => compileSign({ text }).pattern.source).join('|'), 'i');
}
