import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { HELP } from '../../test/support/launcher-help.ts';
import { isWholeHelp, parseHelpFlags, standingOf } from './help-flags.ts';

const names = parseHelpFlags(HELP);

test('every name that the text defines, and none that it only mentions', () => {
  expect([...names].sort()).toEqual(
    [
      ...['help', 'h', 'model-path', 'model', 'host', 'port', 'mem-fraction-static', 'kv-cache-dtype', 'tensor-parallel-size'],
      ...['tp-size', 'tp', 'enable-metrics', 'enable-metrics-for-all-schedulers', 'cuda-graph-bs', 'enable-hierarchical-cache'],
      ...['hicache-size', 'hicache-ratio', 'enable-prefix-caching', 'no-enable-prefix-caching', 'dp', 'data-parallel-size'],
    ].sort(),
  );
});

test.each([
  ['tp', 'known'],
  ['mem-frac', 'known'],
  ['enable-metrics', 'known'],
  ['enable-metr', 'ambiguous'],
  ['enable-reasoning', 'unknown'],
  ['old-flag', 'unknown'],
  ['e', 'unknown'],
] as const)('%s is %s', (name, standing) => {
  expect(standingOf('sglang', name, names)).toBe(standing);
});

test('vLLM takes underscores, and fields of a flag behind a dot', () => {
  expect(standingOf('vllm', 'tensor_parallel_size', names)).toBe('known');
  expect(standingOf('sglang', 'tensor_parallel_size', names)).toBe('unknown');
  expect(standingOf('vllm', 'kv-cache-dtype.level', names)).toBe('known');
});

test('a text that does not list all flags is told apart', () => {
  expect(isWholeHelp('sglang', names)).toBe(true);
  expect(isWholeHelp('vllm', names)).toBe(false);
  expect(isWholeHelp('openai', names)).toBe(false);
  for (const text of [
    '',
    'bash: vllm: command not found',
    'Traceback (most recent call last):\n  File "x"',
    'For full list: vllm serve --help=all',
  ])
    expect(isWholeHelp('sglang', parseHelpFlags(text))).toBe(false);
});

test('a launcher’s real usage, as it stands in a log behind what was imported', () => {
  const log = readFileSync(new URL('../../test/corpus/logs/031-sglang-unrecognized-argument.log', import.meta.url), 'utf8');
  const found = parseHelpFlags(log);
  for (const name of ['model-path', 'trust-remote-code', 'kv-cache-dtype', 'context-length'])
    expect([name, found.has(name)]).toEqual([name, true]);
  expect(found.has('enable-reasoning')).toBe(false);
});
