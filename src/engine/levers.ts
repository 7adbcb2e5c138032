/**
 * What a launch flag changes in the answers: nothing, the order of sums (differences like those between two batches of the same server), or the
 * numerics themselves. Pure. Where no policy rule is written, a lever that changes the numerics is asked about and never pulled by itself.
 */

export type LeverSubject = 'kv-cache' | 'weights' | 'attention' | 'model' | 'none';

export interface Lever {
  /** `none`: the same sums. `order`: other sums of the same terms (parallelism, batch sizes). `numerics`: other terms. `unknown`: a flag that no table has. */
  readonly effect: 'none' | 'order' | 'numerics' | 'unknown';
  readonly subject: LeverSubject;
  readonly because: string;
}

type Row = readonly [names: string, effect: Lever['effect'], subject: LeverSubject, because: string];

/** By the canonical names of the flag tables. */
const SGLANG: readonly Row[] = [
  ['kv-cache-dtype', 'numerics', 'kv-cache', 'the type of every stored key and value'],
  ['speculative-draft-kv-cache-dtype', 'order', 'none', 'the draft only proposes; the target decides'],
  ['quantization dtype', 'numerics', 'weights', 'the format that weights are computed in'],
  ['mamba-ssm-dtype', 'numerics', 'kv-cache', 'the type of the recurrent states'],
  [
    'attention-backend prefill-attention-backend decode-attention-backend',
    'numerics',
    'attention',
    'some kernels compute attention in fewer bits',
  ],
  ['model-path', 'numerics', 'model', 'another model'],
  ['context-length', 'numerics', 'model', 'some models scale their positions by it'],
  ['tp-size dp-size pp-size ep-size dcp-size enable-dp-attention', 'order', 'none', 'the same sums in another order'],
  [
    'speculative-algorithm speculative-draft-model-path speculative-num-draft-tokens',
    'order',
    'none',
    'verified against the target',
  ],
  ['chunked-prefill-size enable-mixed-chunk max-running-requests max-prefill-tokens', 'order', 'none', 'other batches'],
  [
    'cuda-graph-max-bs-decode cuda-graph-bs-decode disable-cuda-graph cuda-graph-backend-decode',
    'order',
    'none',
    'other padding of batches',
  ],
  [
    'enable-piecewise-cuda-graph disable-piecewise-cuda-graph cuda-graph-backend-prefill',
    'order',
    'none',
    'other padding of batches',
  ],
  [
    'mem-fraction-static max-total-tokens page-size swa-full-tokens-ratio disable-hybrid-swa-memory',
    'none',
    'none',
    'how much is kept, not what',
  ],
  ['mamba-full-memory-ratio max-mamba-cache-size language-only', 'none', 'none', 'how much is kept, not what'],
  [
    'enable-hierarchical-cache hicache-ratio hicache-size hicache-write-policy disable-radix-cache',
    'none',
    'none',
    'what is computed again or kept',
  ],
  ['schedule-policy schedule-conservativeness', 'none', 'none', 'who waits'],
  ['model-loader-extra-config watchdog-timeout', 'none', 'none', 'how files are read, and how long a step may take'],
  ['host port enable-metrics served-model-name', 'none', 'none', 'where and under which name it is reached'],
];

const VLLM: readonly Row[] = [
  ['kv-cache-dtype calculate-kv-scales', 'numerics', 'kv-cache', 'the type of every stored key and value'],
  ['quantization dtype', 'numerics', 'weights', 'the format that weights are computed in'],
  ['mamba-ssm-cache-dtype', 'numerics', 'kv-cache', 'the type of the recurrent states'],
  ['attention-backend', 'numerics', 'attention', 'some kernels compute attention in fewer bits'],
  ['model', 'numerics', 'model', 'another model'],
  ['enable-lora', 'numerics', 'model', 'adapters change the weights'],
  [
    'tensor-parallel-size data-parallel-size pipeline-parallel-size decode-context-parallel-size enable-expert-parallel',
    'order',
    'none',
    'the same sums in another order',
  ],
  ['speculative-config', 'order', 'none', 'verified against the target'],
  ['max-num-batched-tokens max-num-seqs enable-chunked-prefill', 'order', 'none', 'other batches'],
  ['enforce-eager cuda-graph-sizes max-cudagraph-capture-size', 'order', 'none', 'other padding of batches'],
  [
    'gpu-memory-utilization kv-cache-memory-bytes num-gpu-blocks-override block-size cpu-offload-gb',
    'none',
    'none',
    'how much is kept, not what',
  ],
  ['max-model-len enable-prefix-caching language-model-only', 'none', 'none', 'how much is kept, not what'],
  ['safetensors-load-strategy', 'none', 'none', 'how files are read'],
  ['host port served-model-name', 'none', 'none', 'where and under which name it is reached'],
];

const TABLES = { sglang: expand(SGLANG), vllm: expand(VLLM) };

function expand(rows: readonly Row[]): ReadonlyMap<string, Lever> {
  return new Map(
    rows.flatMap(([names, effect, subject, because]) => names.split(' ').map((name) => [name, { effect, subject, because }])),
  );
}

/** `name`: as the flag table spells it. A flag that no table has may change anything. */
export function findLever(engine: 'sglang' | 'vllm', name: string): Lever {
  return TABLES[engine].get(name) ?? { effect: 'unknown', subject: 'none', because: 'nobody has said what this flag changes' };
}
