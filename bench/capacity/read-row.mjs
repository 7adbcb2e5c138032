/**
 * One line of a capacity.jsonl (a printed KV pool, with the facts and flags that led to it) → a plan request. Nothing is looked up by a
 * line's id: model, GPU, version and flags are read from its fields, and from its notes where the fields say nothing.
 */
import { describeGpu, findGpu, GPUS } from '../../dist/capacity/gpus.js';
import { findKnownModel, KNOWN_MODELS } from '../../dist/capacity/known-models.js';
import { readFacts } from '../../dist/capacity/read-facts.js';
import { readModelConfig } from '../../dist/capacity/read-model-config.js';

/** Newest release of each engine at the end of a month: for lines that have a month and no version. */
const RELEASES = {
  sglang: [
    ['2025-01', '0.4.2'],
    ['2025-02', '0.4.3'],
    ['2025-03', '0.4.4'],
    ['2025-04', '0.4.6'],
    ['2025-06', '0.4.7'],
    ['2025-07', '0.4.10'],
    ['2025-08', '0.5.1'],
    ['2025-09', '0.5.3'],
    ['2025-10', '0.5.4'],
    ['2025-11', '0.5.5'],
    ['2025-12', '0.5.6'],
    ['2026-01', '0.5.8'],
    ['2026-02', '0.5.9'],
    ['2026-04', '0.5.10'],
    ['2026-05', '0.5.12'],
    ['2026-06', '0.5.14'],
    ['2026-07', '0.5.16'],
    ['2026-08', '0.5.18'],
  ],
  vllm: [
    ['2024-08', '0.5.5'],
    ['2024-11', '0.6.4'],
    ['2025-01', '0.7.0'],
    ['2025-03', '0.8.2'],
    ['2025-06', '0.9.1'],
    ['2025-07', '0.10.0'],
    ['2025-10', '0.11.0'],
    ['2025-12', '0.13.0'],
    ['2026-02', '0.16.0'],
    ['2026-05', '0.21.0'],
  ],
};
/** Numbers of issues grow with time: the first number of a month in the engine's own repository, from dated reports. */
const ISSUES = {
  'sgl-project/sglang': [
    [2500, '2025-01'],
    [4826, '2025-03'],
    [6888, '2025-06'],
    [8500, '2025-07'],
    [11716, '2025-10'],
    [15909, '2025-12'],
    [17392, '2026-01'],
    [18262, '2026-02'],
    [22779, '2026-04'],
    [24589, '2026-05'],
    [27537, '2026-06'],
    [31514, '2026-07'],
    [36000, '2026-08'],
  ],
  'vllm-project/vllm': [
    [7593, '2024-08'],
    [10517, '2024-11'],
    [14462, '2025-03'],
    [19000, '2025-06'],
    [21348, '2025-07'],
    [26000, '2025-10'],
    [28228, '2025-11'],
    [34000, '2026-02'],
    [42000, '2026-05'],
  ],
};
const MONTHS = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
];

/** A row as the formulas see it: shape and gpu may be missing, and then `why` says so. */
export function readRow(row) {
  const why = [];
  const shape = findShape(row, why);
  const facts = row.log_facts ?? {};
  const version = findVersion(row);
  const gpu = findRowGpu(row, facts, shape, why);
  return { row, shape, gpu, version, flags: flagsOf(row), facts: factsOf(facts), why };
}

export function factsOf(facts) {
  const given = {
    weightsGiBPerGpu: facts.weights_gb_per_gpu,
    freeBeforeLoadGiB: facts.avail_mem_before_load_gb,
    freeAfterLoadGiB: facts.avail_mem_after_load_gb,
    totalGiB: facts.total_gpu_memory_gib,
    outsideTorchGiB: facts.non_torch_memory_gib,
    // V0 prints the peak with the weights in it.
    activationsGiB:
      facts.peak_torch_memory_gib && facts.weights_gb_per_gpu
        ? Number((facts.peak_torch_memory_gib - facts.weights_gb_per_gpu).toFixed(2))
        : null,
  };
  const { facts: read, problems } = readFacts(given);
  if (problems.length > 0) throw new Error(problems.join('; '));
  return read;
}

function findVersion(row) {
  if (row.engine_version) return row.engine_version;
  const notes = row.notes ?? '';
  const iso = /\b(20\d\d)-(\d\d)-\d\d\b/.exec(notes);
  const named = new RegExp(`(${MONTHS.join('|')}) (20\\d\\d)`).exec(notes);
  let month = iso ? `${iso[1]}-${iso[2]}` : named ? `${named[2]}-${String(MONTHS.indexOf(named[1]) + 1).padStart(2, '0')}` : '';
  if (/default since 0\.21/.test(notes)) return '0.21.0';
  if (/\bV0\b/.test(`${notes} ${row.capacity_basis}`)) return '0.6.4';
  if (month === '') month = monthOfIssue(row.source ?? '');
  if (month === '') return '';
  const known = RELEASES[row.engine].filter(([until]) => until <= month);
  return known.at(-1)?.[1] ?? '';
}

function monthOfIssue(source) {
  const [repository, number] = source.split('#');
  const reached = (ISSUES[repository] ?? []).filter(([from]) => from <= Number(number));
  return reached.at(-1)?.[1] ?? '';
}

function findShape(row, why) {
  const named = (row.model ?? '').replace(/\s*\(.*\)\s*$/, '').trim();
  const model = known(named) ?? knownInNotes(row) ?? knownBySuffix(named);
  if (model === undefined) {
    why.push(named === '' ? 'the line names no model' : `no shape of ${named} is known`);
    return undefined;
  }
  const config = withQuantisation(model.config, row.weights_dtype ?? '', named || model.name);
  return readModelConfig({ ...model, config });
}

function known(name) {
  return name === '' ? undefined : findKnownModel(name);
}

/** `type=…, the Qwen3-30B-A3B shape`: the longest known name that the notes mention, sizes and all. */
function knownInNotes(row) {
  const notes = (row.notes ?? '').toLowerCase().replaceAll(/[-_ ]/g, '');
  if (row.model) return undefined;
  const tails = KNOWN_MODELS.map((name) => [name, name.split('/')[1].replace(/-(Instruct|Chat|it)$/i, '')]);
  const hits = tails.filter(([, tail]) => notes.includes(tail.toLowerCase().replaceAll(/[-_ ]/g, '')));
  const longest = hits.sort((a, b) => b[1].length - a[1].length)[0];
  return longest === undefined ? undefined : findKnownModel(longest[0]);
}

/** A requantised copy under another owner: `cyankiwi/X-AWQ-4bit` is X. */
function knownBySuffix(name) {
  const tail = (name.split('/')[1] ?? name).replace(/-(AWQ|GPTQ|NVFP4|FP8|INT4|W4A16|w4a8|4bit|8bit|0731)\b.*$/i, '');
  const candidates = KNOWN_MODELS.filter(
    (one) =>
      one.split('/')[1].toLowerCase() === tail.toLowerCase() ||
      one.split('/')[1].toLowerCase() === `${tail}-instruct`.toLowerCase(),
  );
  return candidates.length > 0 ? findKnownModel(candidates[0]) : undefined;
}

/** The weights of the line where they are not those of the table's entry. */
function withQuantisation(config, weights, name) {
  const text = `${weights} ${name}`.toLowerCase();
  const own = config.quantization_config ?? config.text_config?.quantization_config;
  if (own && !/awq|gptq|autoround|auto-round|nvfp4|w4a8/.test(text)) return config;
  const set = (quantization_config) => ({ ...config, quantization_config });
  if (/awq/.test(text)) return set({ quant_method: 'awq', bits: 4, group_size: 128 });
  if (/autoround|auto-round/.test(text)) return set({ quant_method: 'auto-round', bits: 4, group_size: 128 });
  if (/nvfp4/.test(text)) return set({ quant_method: 'modelopt', quant_algo: 'NVFP4', ignore: ['*self_attn*', '*linear_attn*'] });
  if (/fp8/.test(text) && !/online/.test(text)) return set({ quant_method: 'fp8', weight_block_size: [128, 128] });
  return config;
}

function findRowGpu(row, facts, shape, why) {
  if (row.gpu) {
    try {
      return findGpu(row.gpu.replace(/\(.*\)/, ''));
    } catch {
      why.push(`no GPU "${row.gpu}" is known`);
    }
  }
  const before =
    facts.avail_mem_before_load_gb ??
    sum(facts.avail_mem_after_load_gb, facts.weights_gb_per_gpu) ??
    sumOfParts(row, facts, shape);
  const class_ = before ?? row.gpu_mem_gb ?? undefined;
  if (class_ === undefined) {
    why.push('the GPU is not named');
    return undefined;
  }
  // The smallest card whose total holds what was free: what is free before the weights is 1 to 5 GiB less than the total.
  const fits = GPUS.filter((gpu) =>
    before ? gpu.memoryMiB / 1024 > before : Math.abs(gpu.memoryMiB / 1024 / class_ - 1) < 0.05,
  );
  const nearest = fits.sort((a, b) => a.memoryMiB - b.memoryMiB)[0];
  return nearest ?? describeGpu(`${class_} GB class`, Math.round(class_ * 1024));
}

/** Free after the load, or after the pool and the pool, with the weights that the shape says: enough to tell the size of the card. */
function sumOfParts(row, facts, shape) {
  const after = facts.avail_mem_after_load_gb ?? sum(facts.avail_mem_after_pool_gb, facts.kv_size_gb);
  if (after == null || shape === undefined) return undefined;
  const ranks = row.tp ?? 1;
  return after + shape.weights.reduce((all, part) => all + part.bytes / (part.split === 'whole' ? 1 : ranks), 0) / 2 ** 30;
}

function sum(a, b) {
  return a == null || b == null ? undefined : a + b;
}

function flagsOf(row) {
  const words = [];
  const push = (name, value) => value != null && words.push(`--${name}`, String(value));
  const isSglang = row.engine === 'sglang';
  push(isSglang ? 'tp-size' : 'tensor-parallel-size', row.tp);
  push(isSglang ? 'dp-size' : 'data-parallel-size', row.dp);
  push(isSglang ? 'pp-size' : 'pipeline-parallel-size', row.pp);
  if (isSglang) push('ep-size', row.ep);
  if (row.dp_attention) words.push('--enable-dp-attention');
  push('mem-fraction-static', isSglang ? (row.mem_fraction_static ?? row.log_facts?.effective_mem_fraction_static) : null);
  push('gpu-memory-utilization', isSglang ? null : row.gpu_memory_utilization);
  // `bf16` in a line is what the cache was; versions before 0.5.4 had no such flag.
  const kv =
    row.kv_cache_dtype === 'bf16' && isSglang
      ? null
      : (row.kv_cache_dtype ?? (/\bfp8 KV\b/.test(row.notes ?? '') ? 'fp8_e4m3' : null));
  push('kv-cache-dtype', kv);
  push(isSglang ? 'page-size' : 'block-size', row.page_size);
  push('max-total-tokens', isSglang ? row.max_total_tokens_flag : null);
  push(isSglang ? 'chunked-prefill-size' : 'max-num-batched-tokens', row.chunked_prefill_size);
  if (isSglang) push('cuda-graph-max-bs', row.cuda_graph_max_bs);
  push(isSglang ? 'context-length' : 'max-model-len', row.context_len);
  if (/online/.test(row.weights_dtype ?? '')) words.push('--quantization', 'fp8');
  const other = row.other_flags ?? '';
  if (/\bEAGLE\b/.test(other)) words.push('--speculative-algorithm', 'EAGLE');
  const written = other.split(/[\s,]+/).filter(Boolean);
  for (const [at, word] of written.entries()) {
    if (word.startsWith('--')) words.push(word);
    else if ((written[at - 1] ?? '').startsWith('--')) words.push(word);
  }
  return words;
}
