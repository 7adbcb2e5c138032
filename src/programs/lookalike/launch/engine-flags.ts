/**
 * What the real launchers' argument parsers take beside the flags that decide memory and speed, and what they say. Pure.
 * Names are those of `ServerArgs` and `EngineArgs`; a flag that came or went with a version says so.
 */
import type { PlannedEngine } from '../../../capacity/engine-launch.ts';
import { FLAG_TABLES } from '../../../capacity/plan-launch.ts';
import { type FlagKind, type FlagRow, type FlagTable, type ParsedFlags, parseFlagWords } from '../../../engine/launch-flags.ts';
import { isAtLeast } from '../../../engine/version.ts';

const rowsOf = (kind: FlagKind, names: string, more: Partial<FlagRow> = {}): FlagRow[] =>
  names
    .trim()
    .split(/\s+/)
    .map((name) => ({ name, kind, ...more }));

const SGLANG: readonly FlagRow[] = [
  ...rowsOf(
    'text',
    `host tokenizer-path tokenizer-mode load-format model-loader-extra-config revision served-model-name weight-version
     chat-template completion-template reasoning-parser tool-call-parser api-key admin-api-key log-level log-level-http
     crash-dump-folder device dist-init-addr json-model-override-args preferred-sampling-params sampling-backend grammar-backend
     mm-attention-backend hicache-io-backend hicache-mem-layout hicache-storage-backend hicache-storage-prefetch-policy
     moe-a2a-backend moe-runner-backend fp8-gemm-backend torchao-config load-balance-method disaggregation-mode config
     sampling-defaults warmups file-storage-path bucket-time-to-first-token speculative-token-map lora-paths`,
  ),
  ...rowsOf(
    'count',
    `port tokenizer-worker-num log-requests-level decode-log-interval base-gpu-id gpu-id-step random-seed stream-interval
     dist-timeout nccl-port nnodes node-rank max-queued-requests priority-scheduling-preemption-threshold torch-compile-max-bs
     triton-attention-num-kv-splits num-continuous-decode-steps speculative-num-steps speculative-eagle-topk max-loras-per-batch
     prefill-max-requests`,
  ),
  ...rowsOf('fraction', 'watchdog-timeout soft-watchdog-timeout'),
  ...rowsOf(
    'switch',
    `skip-tokenizer-init trust-remote-code is-embedding enable-multimodal enable-cache-report log-requests show-time-cost
     enable-metrics collect-tokens-histogram stream-output enable-priority-scheduling disable-overlap-schedule
     disable-custom-all-reduce enable-torch-compile enable-nan-detection enable-p2p-check triton-attention-reduce-in-fp32
     delete-ckpt-after-loading enable-memory-saver allow-auto-truncate enable-custom-logit-processor disable-shared-experts-fusion
     disable-chunked-prefix-cache disable-fast-image-processor enable-return-hidden-states skip-server-warmup
     weight-loader-disable-mmap enable-lora enable-mscclpp disable-hicache-numa-detect enable-request-time-stats-logging
     incremental-streaming-output`,
  ),
];

const VLLM: readonly FlagRow[] = [
  ...rowsOf(
    'text',
    `host served-model-name tokenizer tokenizer-mode load-format model-loader-extra-config revision tokenizer-revision
     chat-template chat-template-content-format api-key uvicorn-log-level tool-call-parser reasoning-parser master-addr
     distributed-executor-backend generation-config override-generation-config hf-overrides limit-mm-per-prompt
     compilation-config kv-transfer-config scheduling-policy prefix-caching-hash-algo response-role download-dir
     allowed-origins ssl-keyfile ssl-certfile`,
  ),
  ...rowsOf(
    'count',
    'port master-port seed max-logprobs api-server-count data-parallel-rank nnodes node-rank swap-space shutdown-timeout',
  ),
  ...rowsOf(
    'switch',
    `trust-remote-code enable-auto-tool-choice disable-log-stats enable-log-requests disable-log-requests
     disable-uvicorn-access-log enable-prompt-tokens-details enable-request-id-headers disable-custom-all-reduce
     enable-sleep-mode async-scheduling headless enable-server-load-tracking`,
    { isNegatable: true },
  ),
];

type Least = [number, number, number];
/** Spellings that not all versions have: from, and up to but not with. */
const BOUNDS: Readonly<Record<PlannedEngine, Readonly<Record<string, readonly [from?: Least, to?: Least]>>>> = {
  sglang: {
    'cuda-graph-max-bs-decode': [[0, 5, 14]],
    'cuda-graph-bs-decode': [[0, 5, 14]],
    'cuda-graph-backend-decode': [[0, 5, 14]],
    'cuda-graph-backend-prefill': [[0, 5, 14]],
    'disable-prefill-cuda-graph': [[0, 5, 14]],
    'enable-piecewise-cuda-graph': [
      [0, 5, 5],
      [0, 5, 14],
    ],
    'disable-piecewise-cuda-graph': [[0, 5, 10]],
    'dcp-size': [[0, 5, 15]],
    dcp: [[0, 5, 15]],
    'decode-context-parallel-size': [[0, 5, 15]],
    'max-queued-requests': [[0, 4, 10]],
    'soft-watchdog-timeout': [[0, 5, 7]],
    'admin-api-key': [[0, 5, 9]],
  },
  vllm: {
    'decode-context-parallel-size': [[0, 11, 0]],
    dcp: [[0, 11, 0]],
    'max-cudagraph-capture-size': [[0, 11, 1]],
    'kv-cache-memory-bytes': [[0, 10, 2]],
    'shutdown-timeout': [[0, 16, 0]],
  },
};

export function flagTable(engine: PlannedEngine): FlagTable {
  const { rows, underscoresAreDashes } = FLAG_TABLES[engine];
  return { rows: [...rows, ...(engine === 'sglang' ? SGLANG : VLLM)], underscoresAreDashes };
}

/** `help` and `refused` are what the parser prints: the first on stdout with exit 0, the second on stderr with exit 2. */
export type Taken =
  | { readonly kind: 'flags'; readonly flags: ParsedFlags; readonly model: string }
  | { readonly kind: 'help'; readonly text: string }
  | { readonly kind: 'refused'; readonly text: string };

export function takeFlags(engine: PlannedEngine, version: string, given: readonly string[]): Taken {
  const table = flagTable(engine);
  if (given.some((word) => /^(-h|--help)(=.*)?$/.test(word))) return { kind: 'help', text: renderHelp(engine, version, table) };
  const { positional, words } = takePositional(engine, given);
  const flags = parseFlagWords(words, table);
  const strange = [
    ...flags.unread,
    ...words.filter((word) => /^--?[A-Za-z]/.test(word) && !(isOf(engine, version, word) && hasItsDashes(engine, word))),
  ];
  const refuse = (text: string): Taken => ({
    kind: 'refused',
    text: `${usage(engine, version, table)}${PROGRAM[engine]}: error: ${text}\n`,
  });
  const [problem] = flags.problems;
  if (problem !== undefined) return refuse(`argument ${problem.replace(/ takes .*$/, '')}: ${argparseWords(problem)}`);
  if (strange.length > 0) return refuse(`unrecognized arguments: ${[...new Set(strange)].join(' ')}`);
  const named = flags.values[engine === 'sglang' ? 'model-path' : 'model'];
  const model = positional || (typeof named === 'string' ? named : '');
  if (model === '' && engine === 'sglang') return refuse('the following arguments are required: --model-path/--model');
  return { kind: 'flags', flags, model: model || 'Qwen/Qwen3-0.6B' }; // vLLM's own default
}

const PROGRAM: Readonly<Record<PlannedEngine, string>> = { sglang: 'launch_server.py', vllm: 'vllm serve' };

/** `serve MODEL` and `MODEL` before the flags, as vLLM takes them. */
function takePositional(engine: PlannedEngine, given: readonly string[]): { positional: string; words: readonly string[] } {
  if (engine === 'sglang') return { positional: '', words: given };
  const words = given[0] === 'serve' ? given.slice(1) : given;
  const [first] = words;
  return first === undefined || first.startsWith('-') ? { positional: '', words } : { positional: first, words: words.slice(1) };
}

function isOf(engine: PlannedEngine, version: string, word: string): boolean {
  const [bare = ''] = word.replace(/^-+/, '').split('=');
  const name = engine === 'vllm' ? bare.replaceAll('_', '-') : bare;
  const [from, to] = Object.hasOwn(BOUNDS[engine], name) ? (BOUNDS[engine][name] ?? []) : [];
  const isSince = from === undefined || (isAtLeast(version, from) ?? true);
  return isSince && (to === undefined || !(isAtLeast(version, to) ?? true));
}

function argparseWords(problem: string): string {
  const said = /; (.*) was given$/.exec(problem)?.[1] ?? '';
  return said === 'nothing' ? 'expected one argument' : `invalid value: ${said.replaceAll('"', "'")}`;
}

function usage(engine: PlannedEngine, version: string, table: FlagTable): string {
  const rows = table.rows.flatMap((row) =>
    spellings(engine, version, row)
      .slice(0, 1)
      .map((name) => `[${name}${metavar(row)}]`),
  );
  const head = engine === 'vllm' ? 'vllm serve [model_tag] [options]' : `${PROGRAM[engine]} [-h] --model-path MODEL_PATH`;
  return `usage: ${head}\n${wrap(rows, 24)}\n`;
}

function renderHelp(engine: PlannedEngine, version: string, table: FlagTable): string {
  const options = table.rows.flatMap((row) => {
    const names = spellings(engine, version, row);
    return names.length === 0 ? [] : [`  ${names.map((name) => `${name}${metavar(row)}`).join(', ')}`];
  });
  return `${usage(engine, version, table)}\noptions:\n  -h, --help            show this help message and exit\n${options.join('\n')}\n`;
}

/** vLLM's short names (`-tp`) have one dash; all others two. */
function hasItsDashes(engine: PlannedEngine, word: string): boolean {
  const name = word.replace(/^-+/, '').split('=')[0] ?? '';
  const isShort = engine === 'vllm' && VLLM_SHORT.has(name);
  return word.startsWith('--') ? !isShort : isShort;
}

const VLLM_SHORT = new Set(['tp', 'dp', 'pp', 'dcp', 'ep', 'q']);

/** With their dashes. */
function spellings(engine: PlannedEngine, version: string, row: FlagRow): string[] {
  const names = [row.name, ...(row.aliases ?? [])].filter((name) => isOf(engine, version, name));
  const dashed = names.map((name) => (engine === 'vllm' && VLLM_SHORT.has(name) ? `-${name}` : `--${name}`));
  return row.isNegatable === true ? [...dashed, `--no-${row.name}`] : dashed;
}

function metavar({ name, kind }: FlagRow): string {
  return kind === 'switch' ? '' : ` ${name.toUpperCase().replaceAll('-', '_')}${kind === 'list' ? ' [...]' : ''}`;
}

function wrap(words: readonly string[], indent: number): string {
  const lines: string[] = [];
  let line = ' '.repeat(indent);
  for (const word of words) {
    if (line.length + word.length > 100 && line.trim() !== '') {
      lines.push(line.trimEnd());
      line = ' '.repeat(indent);
    }
    line += `${word} `;
  }
  return [...lines, line.trimEnd()].join('\n');
}
