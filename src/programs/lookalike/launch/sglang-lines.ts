/** SGLang's sentences of a start, by version (0.4.6 to 0.5.18). Pure; sources: field notes on its log formats. */
import type { EngineLaunch } from '../../../capacity/engine-launch.ts';
import type { ModelShape } from '../../../capacity/model-shape.ts';
import { isAtLeast } from '../../../engine/version.ts';

export const gb = (GiB: number): string => `${GiB.toFixed(2)} GB`;

export class SglangLines {
  readonly #version: string;
  readonly #launch: EngineLaunch;
  readonly #shape: ModelShape;

  constructor(launch: EngineLaunch, shape: ModelShape) {
    this.#version = launch.version;
    this.#launch = launch;
    this.#shape = shape;
  }

  from(...least: [number, number, number]): boolean {
    return isAtLeast(this.#version, least) ?? true;
  }

  distributedEnd(seconds: number): string {
    const elapsed = this.from(0, 5, 9) ? `elapsed=${seconds.toFixed(2)} s, ` : '';
    return `Init torch distributed ends. ${elapsed}mem usage=0.28 GB`;
  }

  weightsEnd(seconds: number, freeGiB: number, weightsGiB: number): string {
    const elapsed = this.from(0, 5, 9) ? `elapsed=${seconds.toFixed(2)} s, ` : '';
    const dtype = this.from(0, 5, 12) ? this.#quantisation() : `dtype=${torchName(this.#shape.computeType)}, `;
    return `Load weight end. ${elapsed}type=${this.#shape.architecture}, ${dtype}avail mem=${gb(freeGiB)}, mem usage=${gb(weightsGiB)}.`;
  }

  #quantisation(): string {
    const { method } = this.#shape.quantisation;
    return method === '' ? '' : `quant=${method}, `;
  }

  /** '' in versions that say it in the pool's own line, or nowhere. */
  kvType(): string {
    if (!this.from(0, 5, 3) || this.from(0, 5, 13)) return '';
    return `Using KV cache dtype: ${torchName(this.#launch.kvType.type)}`;
  }

  pool(tokens: number, GiB: number, isNamed: boolean): string {
    const isLatent = this.#shape.caches.some(({ kind }) => kind === 'latent' || kind === 'compressed');
    const size = isLatent ? `KV size: ${gb(GiB)}` : `K size: ${gb(GiB / 2)}, V size: ${gb(GiB / 2)}`;
    const type = this.from(0, 5, 13) && isNamed ? `dtype: ${torchName(this.#launch.kvType.type)}, ` : '';
    return `KV Cache is allocated. ${type}#tokens: ${tokens}, ${size}`;
  }

  hostPool(GBPerRank: number, tokens: number): string {
    return this.from(0, 5, 15)
      ? `Allocating kv hierarchical KV host pool: ${tokens} tokens, ${gb(GBPerRank)} host memory.`
      : `Allocating ${gb(GBPerRank)} host memory for hierarchical KV cache.`;
  }

  graphsBegin(freeGiB: number): string {
    const { graphBatches } = this.#launch;
    if (!this.from(0, 5, 14)) return `Capture cuda graph begin. This can take up to several minutes. avail mem=${gb(freeGiB)}`;
    const per = this.from(0, 5, 16) ? 'num_tokens_per_req' : 'num_tokens_per_bs';
    return `Capture target decode CUDA graph begin. backend=full, ${per}=1, bs=[${graphBatches.join(', ')}], avail mem=${gb(freeGiB)}`;
  }

  graphsEnd(seconds: number, usedGiB: number, freeGiB: number): string {
    const [used, free] = [gb(usedGiB), gb(freeGiB)];
    return this.from(0, 5, 14)
      ? `Capture target decode CUDA graph end. elapsed=${seconds.toFixed(2)} s, mem usage=${used}, avail mem=${free}.`
      : `Capture cuda graph end. Time elapsed: ${seconds.toFixed(2)} s. mem usage=${used}. avail mem=${free}.`;
  }

  prefillGraphsBegin(freeGiB: number, lengths: readonly number[]): string {
    return this.from(0, 5, 14)
      ? `Capture target prefill CUDA graph begin. backend=breakable, num_tokens=[${lengths.join(', ')}], avail mem=${gb(freeGiB)}`
      : `Capture piecewise CUDA graph begin. avail mem=${gb(freeGiB)}`;
  }

  prefillGraphsEnd(seconds: number, usedGiB: number, freeGiB: number): string {
    const [used, free] = [gb(usedGiB), gb(freeGiB)];
    return this.from(0, 5, 14)
      ? `Capture target prefill CUDA graph end. elapsed=${seconds.toFixed(2)} s, mem usage=${used}, avail mem=${free}.`
      : `Capture piecewise CUDA graph end. Time elapsed: ${seconds.toFixed(2)} s. mem usage=${used}. avail mem=${free}.`;
  }

  capacity(poolTokens: number, maxRunning: number, freeGiB: number): string {
    const { prefillChunkTokens, maxPrefillTokens, contextTokens } = this.#launch;
    const free = this.from(0, 4, 10) ? `, available_gpu_mem=${gb(freeGiB)}` : '';
    return `max_total_num_tokens=${poolTokens}, chunked_prefill_size=${prefillChunkTokens || -1}, max_prefill_tokens=${maxPrefillTokens}, max_running_requests=${maxRunning}, context_len=${contextTokens}${free}`;
  }

  /** Of its own warm-up request, which a model with a vision tower answers with an image. */
  warmupPrefill(newTokens: number): string {
    const tail = this.from(0, 5, 11)
      ? '#queue-req: 0, #pending-token: 0, cuda graph: False, input throughput (token/s): 0.00'
      : this.from(0, 5, 9)
        ? '#queue-req: 0, input throughput (token/s): 0.00, cuda graph: False'
        : '#queue-req: 0, ';
    const head = this.from(0, 5, 5) ? 'Prefill batch,' : this.from(0, 5, 4) ? 'Prefill batch [1],' : 'Prefill batch.';
    return `${head} #new-seq: 1, #new-token: ${newTokens}, #cached-token: 0, token usage: 0.00, #running-req: 0, ${tail}`;
  }

  modelInfoPath(): string {
    return this.from(0, 5, 7) ? '/model_info' : '/get_model_info';
  }
}

const TORCH_NAMES: Readonly<Record<string, string>> = {
  bf16: 'torch.bfloat16',
  f16: 'torch.float16',
  f32: 'torch.float32',
  fp8_e4m3: 'torch.float8_e4m3fn',
  fp8_e5m2: 'torch.float8_e5m2',
  fp4: 'torch.float4_e2m1fn_x2',
};

export function torchName(type: string): string {
  return TORCH_NAMES[type] ?? `torch.${type}`;
}
