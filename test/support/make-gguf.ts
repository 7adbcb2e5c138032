/**
 * A tiny language model with random weights, written as a GGUF (v3) file: what the embedded engine is tested on without any
 * download. The same seed gives the same bytes. Its answers mean nothing, but its tokens, KV cache and batches are real.
 *
 * 2 layers, width 64, 2 heads of 32 (the block size of q8_0, so that the KV cache can be quantised), 1 KV head, F32.
 */
import { writeFile } from 'node:fs/promises';

const LAYERS = 2;
const WIDTH = 64;
const HEADS = 2;
const HEAD_WIDTH = 32;
const KV_HEADS = 1;
const INNER = 128;

/** GPT-2's byte alphabet, a few merges, and the control tokens of the im-style templates. */
const MERGES = ['t h', 'th e', 'Ġ the', 'i n', 'a n', 'e r', 'Ġ a', 'o n', 'r e', 'Ġ w', 'h e', 'l l', 'he ll', 'hell o'];
const CONTROL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', '<tool_call>', '</tool_call>', '<think>', '</think>'];
const TEMPLATE =
  "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nYou answer.<|im_end|>\\n' }}{% endif %}" +
  "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}" +
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

export interface TinyGguf {
  readonly vocabularySize: number;
  readonly endId: number;
}

export async function writeTinyGguf(path: string, { seed }: { readonly seed: number }): Promise<TinyGguf> {
  const tokens = [...byteAlphabet(), ...MERGES.map((merge) => merge.replace(' ', '')), ...CONTROL];
  const types = tokens.map((token) => (CONTROL.includes(token) ? 3 : 1)); // 3 = control, 1 = normal
  const idOf = (token: string) => tokens.indexOf(token);
  const tensors = weights(seed, tokens.length);

  const out = new ByteWriter();
  out.raw(Buffer.from('GGUF'));
  out.u32(3);
  const metadata: readonly (readonly [
    string,
    string | number | boolean | readonly string[] | readonly number[] | { f32: number },
  ])[] = [
    ['general.architecture', 'llama'],
    ['general.name', 'tiny random'],
    ['general.file_type', 0], // F32
    ['llama.block_count', LAYERS],
    ['llama.context_length', 4096],
    ['llama.embedding_length', WIDTH],
    ['llama.feed_forward_length', INNER],
    ['llama.attention.head_count', HEADS],
    ['llama.attention.head_count_kv', KV_HEADS],
    ['llama.attention.layer_norm_rms_epsilon', { f32: 1e-5 }],
    ['llama.rope.dimension_count', HEAD_WIDTH],
    ['llama.rope.freq_base', { f32: 10_000 }],
    ['llama.vocab_size', tokens.length],
    ['tokenizer.ggml.model', 'gpt2'],
    ['tokenizer.ggml.pre', 'qwen2'],
    ['tokenizer.ggml.tokens', tokens],
    ['tokenizer.ggml.token_type', types],
    ['tokenizer.ggml.merges', MERGES],
    ['tokenizer.ggml.bos_token_id', idOf('<|im_start|>')],
    ['tokenizer.ggml.eos_token_id', idOf('<|im_end|>')],
    ['tokenizer.ggml.padding_token_id', idOf('<|endoftext|>')],
    ['tokenizer.ggml.add_bos_token', false],
    ['tokenizer.chat_template', TEMPLATE],
  ];
  out.u64(tensors.length);
  out.u64(metadata.length);
  for (const [key, value] of metadata) {
    out.text(key);
    out.value(value);
  }
  let offset = 0;
  for (const tensor of tensors) {
    out.text(tensor.name);
    out.u32(tensor.shape.length);
    for (const size of tensor.shape) out.u64(size);
    out.u32(0); // F32
    out.u64(offset);
    offset += align(tensor.values.byteLength);
  }
  out.pad();
  for (const tensor of tensors) {
    out.raw(Buffer.from(tensor.values.buffer));
    out.pad();
  }
  await writeFile(path, out.bytes());
  return { vocabularySize: tokens.length, endId: idOf('<|im_end|>') };
}

interface Tensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly values: Float32Array;
}

function weights(seed: number, vocabularySize: number): Tensor[] {
  const normal = normals(seed);
  const random = (name: string, scale: number, ...shape: number[]): Tensor => {
    const count = shape.reduce((product, size) => product * size, 1);
    return { name, shape, values: Float32Array.from({ length: count }, () => normal() * scale) };
  };
  const ones = (name: string): Tensor => ({ name, shape: [WIDTH], values: new Float32Array(WIDTH).fill(1) });
  const scale = 1 / Math.sqrt(WIDTH); // keeps the size of the activations from layer to layer
  const layers = Array.from({ length: LAYERS }, (_, layer) => [
    ones(`blk.${layer}.attn_norm.weight`),
    random(`blk.${layer}.attn_q.weight`, scale * 2, WIDTH, HEADS * HEAD_WIDTH),
    random(`blk.${layer}.attn_k.weight`, scale * 2, WIDTH, KV_HEADS * HEAD_WIDTH),
    random(`blk.${layer}.attn_v.weight`, scale * 2, WIDTH, KV_HEADS * HEAD_WIDTH),
    random(`blk.${layer}.attn_output.weight`, scale * 2, HEADS * HEAD_WIDTH, WIDTH),
    ones(`blk.${layer}.ffn_norm.weight`),
    random(`blk.${layer}.ffn_gate.weight`, scale, WIDTH, INNER),
    random(`blk.${layer}.ffn_up.weight`, scale, WIDTH, INNER),
    random(`blk.${layer}.ffn_down.weight`, scale, INNER, WIDTH),
  ]);
  return [
    random('token_embd.weight', 1, WIDTH, vocabularySize),
    ...layers.flat(),
    ones('output_norm.weight'),
    random('output.weight', 3 * scale, WIDTH, vocabularySize), // 3: logits far enough apart that a greedy choice is no coin toss
  ];
}

/** Normally distributed numbers from a seed (mulberry32, Box-Muller). */
function normals(seed: number): () => number {
  let state = seed >>> 0;
  const uniform = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

function byteAlphabet(): string[] {
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
    return String.fromCharCode(isPrintable ? byte : next++);
  });
}

const align = (bytes: number) => Math.ceil(bytes / 32) * 32; // 32 = GGUF's default alignment

/** Little-endian, with GGUF's type numbers: 4 u32, 6 f32, 7 bool, 8 string, 9 array, 5 i32. */
class ByteWriter {
  readonly #parts: Buffer[] = [];
  #length = 0;

  raw(part: Buffer): void {
    this.#parts.push(part);
    this.#length += part.length;
  }

  u32(value: number): void {
    const part = Buffer.alloc(4);
    part.writeUInt32LE(value);
    this.raw(part);
  }

  u64(value: number): void {
    const part = Buffer.alloc(8);
    part.writeBigUInt64LE(BigInt(value));
    this.raw(part);
  }

  text(value: string): void {
    const part = Buffer.from(value, 'utf8');
    this.u64(part.length);
    this.raw(part);
  }

  value(value: string | number | boolean | readonly string[] | readonly number[] | { f32: number }): void {
    if (typeof value === 'string') {
      this.u32(8);
      this.text(value);
    } else if (typeof value === 'number') {
      this.u32(4);
      this.u32(value);
    } else if (typeof value === 'boolean') {
      this.u32(7);
      this.raw(Buffer.from([value ? 1 : 0]));
    } else if ('f32' in value) {
      this.u32(6);
      const part = Buffer.alloc(4);
      part.writeFloatLE(value.f32);
      this.raw(part);
    } else {
      this.u32(9);
      this.u32(typeof value[0] === 'string' ? 8 : 5);
      this.u64(value.length);
      for (const item of value) typeof item === 'string' ? this.text(item) : this.u32(item);
    }
  }

  pad(): void {
    this.raw(Buffer.alloc(align(this.#length) - this.#length));
  }

  bytes(): Buffer {
    return Buffer.concat(this.#parts);
  }
}
