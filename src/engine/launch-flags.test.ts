import { describe, expect, it } from 'vitest';
import { parseFlagRecord, parseFlagWords } from './launch-flags.ts';
import { SGLANG_FLAGS } from './sglang/flags.ts';
import { VLLM_FLAGS } from './vllm/flags.ts';

const sglang = (line: string) => parseFlagWords(line.split(' '), SGLANG_FLAGS);
const vllm = (line: string) => parseFlagWords(line.split(' '), VLLM_FLAGS);

describe('one meaning, many spellings', () => {
  it.each([
    '--tp 8',
    '--tp=8',
    '--tp-size 8',
    '--tp-size=8',
    '--tensor-parallel-size 8',
    '--tensor-parallel-size=8',
    '--tensor-parallel 8', // argparse takes what begins one flag alone
    '--tp 4 --tp 8', // the last wins
  ])('SGLang %s', (line) => {
    expect(sglang(line)).toEqual({ values: { 'tp-size': 8 }, unread: [], problems: [] });
  });

  it.each(['-tp 8', '-tp=8', '--tensor-parallel-size 8', '--tensor_parallel_size=8', '--tensor-parallel 8'])(
    'vLLM %s',
    (line) => {
      expect(vllm(line).values).toEqual({ 'tensor-parallel-size': 8 });
    },
  );

  it('knows the new names of 0.5.14 and the old ones', () => {
    for (const line of ['--cuda-graph-max-bs 64', '--cuda-graph-max-bs-decode 64'])
      expect(sglang(line).values).toEqual({ 'cuda-graph-max-bs-decode': 64 });
    expect(sglang('--cuda-graph-bs 1 2 4 8').values).toEqual({ 'cuda-graph-bs-decode': [1, 2, 4, 8] });
  });

  it('reads switches and their negations', () => {
    expect(sglang('--enable-dp-attention --disable-radix-cache').values).toEqual({
      'enable-dp-attention': true,
      'disable-radix-cache': true,
    });
    expect(vllm('--no-enable-prefix-caching').values).toEqual({ 'enable-prefix-caching': false });
    expect(vllm('--enable_prefix_caching').values).toEqual({ 'enable-prefix-caching': true });
    expect(vllm('--no-enforce-eager').values).toEqual({ 'enforce-eager': false });
  });

  it('reads sizes as vLLM does', () => {
    expect(vllm('--max-model-len 32k').values).toEqual({ 'max-model-len': 32_000 });
    expect(vllm('--max-model-len 32K').values).toEqual({ 'max-model-len': 32_768 });
    expect(vllm('--kv-cache-memory-bytes 20G').values).toEqual({ 'kv-cache-memory-bytes': 20 * 2 ** 30 });
  });
});

it('passes over what no formula reads, with its values, and says so', () => {
  const { values, unread } = sglang('--trust-remote-code --tp 8 --log-level info --json-model-override-args={} extra');
  expect(values).toEqual({ 'tp-size': 8 });
  expect(unread).toEqual(['--trust-remote-code', '--log-level info', '--json-model-override-args {} extra']);
});

it('tells wrong values and never throws', () => {
  const { problems, values } = sglang(
    '--tp eight --mem-fraction-static --page-size 1.5 --enable-dp-attention maybe --kv-cache-dtype',
  );
  expect(values).toEqual({});
  expect(problems).toEqual([
    '--tp takes a whole number; "eight" was given',
    '--mem-fraction-static takes a number, as 0.88; nothing was given',
    '--page-size takes a whole number; "1.5" was given',
    '--enable-dp-attention takes no value; "maybe" was given',
    '--kv-cache-dtype takes a value; nothing was given',
  ]);
});

it('takes the mapping of a run file for the same', () => {
  const record = {
    tp: 8,
    'mem-fraction-static': 0.88,
    'enable-hierarchical-cache': true,
    'enable-mixed-chunk': false,
    'kv-cache-dtype': 'bf16',
  };
  expect(parseFlagRecord(record, SGLANG_FLAGS).values).toEqual({
    'tp-size': 8,
    'mem-fraction-static': 0.88,
    'enable-hierarchical-cache': true,
    'enable-mixed-chunk': false,
    'kv-cache-dtype': 'bf16',
  });
});

it('has each spelling once', () => {
  for (const { rows } of [SGLANG_FLAGS, VLLM_FLAGS]) {
    const spellings = rows.flatMap(({ name, aliases }) => [name, ...(aliases ?? [])]);
    expect(new Set(spellings).size).toBe(spellings.length);
  }
});
