import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { dialectOf } from './dialects.ts';
import { parseFlagRecord, parseFlagWords } from './launch-flags.ts';
import { describeCommand, type LaunchFlags, portIn, renderCommand, SGLANG_LINE, VLLM_LINE, wordsOf } from './launching.ts';
import { SGLANG_FLAGS } from './sglang/flags.ts';
import { VLLM_FLAGS } from './vllm/flags.ts';

const sglang = dialectOf('sglang').launching;
const vllm = dialectOf('vllm').launching;
const at = { model: 'moonshotai/Kimi-K2.5', host: '127.0.0.1', port: 8000 };

test('the story’s launch is sent as written, with model, host, port and metrics behind it', () => {
  const flags = {
    tp: 8,
    'mem-fraction-static': 0.88,
    'kv-cache-dtype': 'bf16',
    'enable-hierarchical-cache': true,
    'hicache-size': 48,
  };
  expect(sglang?.usualCommand).toBe('python3 -m sglang.launch_server');
  expect(sglang?.renderWords({ ...at, flags }).join(' ')).toBe(
    '--tp 8 --mem-fraction-static 0.88 --kv-cache-dtype bf16 --enable-hierarchical-cache --hicache-size 48 ' +
      '--model-path moonshotai/Kimi-K2.5 --host 127.0.0.1 --port 8000 --enable-metrics',
  );
});

test('vLLM takes its model as the one word without a flag, wherever the run file names it', () => {
  expect(vllm?.usualCommand).toBe('vllm serve');
  const tail = '--host 127.0.0.1 --port 8000';
  expect(vllm?.renderWords({ ...at, flags: { 'tensor-parallel-size': 8 } }).join(' ')).toBe(
    `moonshotai/Kimi-K2.5 --tensor-parallel-size 8 ${tail}`,
  );
  expect(vllm?.renderWords({ ...at, flags: { model: '/models/k', enforce_eager: false } }).join(' ')).toBe(
    `/models/k --no-enforce_eager ${tail}`,
  );
});

test('what the flags say is not said again, under any of its names', () => {
  const flags = { model: '/models/k', host: '0.0.0.0', port: 31000, 'enable-metrics': false };
  expect(sglang?.renderWords({ ...at, flags })).toEqual(['--model', '/models/k', '--host', '0.0.0.0', '--port', '31000']);
  expect(sglang?.effectiveFlags({ ...at, flags })).toEqual(flags);
  expect(portIn(flags)).toBe(31000);
  expect([portIn({}), portIn({ port: 0 }), portIn({ port: 'x' })]).toEqual([undefined, undefined, undefined]);
});

test('vLLM knows short names with one dash only', () => {
  expect(wordsOf({ tp: 8, dcp: 2, q: 'fp8', seed: 1 }, VLLM_LINE).join(' ')).toBe('-tp 8 -dcp 2 -q fp8 --seed 1');
  expect(wordsOf({ tp: 8 }, SGLANG_LINE)).toEqual(['--tp', '8']);
});

test.each<[LaunchFlags, string[], string[]]>([
  [{ abcd: true }, ['--abcd'], ['--abcd']],
  [{ abcd: false }, [], ['--no-abcd']],
  [{ '--abcd': 1 }, ['--abcd', '1'], ['--abcd', '1']],
  [{ 'cuda-graph-bs': [1, 2, 4] }, ['--cuda-graph-bs', '1', '2', '4'], ['--cuda-graph-bs', '1', '2', '4']],
  [{ abcd: '{"b": 1}' }, ['--abcd', '{"b": 1}'], ['--abcd', '{"b": 1}']],
  [{ abcd: -1, efgh: '-x' }, ['--abcd', '-1', '--efgh=-x'], ['--abcd', '-1', '--efgh=-x']],
])('%j', (flags, inSglang, inVllm) => {
  expect(wordsOf(flags, SGLANG_LINE)).toEqual(inSglang);
  expect(wordsOf(flags, VLLM_LINE)).toEqual(inVllm);
});

test('the words of a launch are read back as the flags that were written', () => {
  const tables = [
    [SGLANG_FLAGS, SGLANG_LINE],
    [VLLM_FLAGS, VLLM_LINE],
  ] as const;
  for (const [table, line] of tables) {
    const value = {
      switch: fc.constant(true),
      count: fc.nat(),
      size: fc.nat(),
      fraction: fc.double({ min: 0.01, max: 0.99, noNaN: true }),
      text: fc.stringMatching(/^[a-z0-9_]+$/),
      list: fc.array(fc.nat(), { minLength: 2 }),
    };
    const given = fc.record(Object.fromEntries(table.rows.map(({ name, kind }) => [name, value[kind]])), { requiredKeys: [] });
    fc.assert(
      fc.property(given, (flags) => {
        const parsed = parseFlagWords(wordsOf(flags as LaunchFlags, line), table);
        expect(parsed).toEqual({ values: flags, unread: [], problems: [] });
        const plain = Object.fromEntries(
          Object.entries(flags).map(([name, one]) => [name, Array.isArray(one) ? one.join(' ') : one]),
        );
        expect(parseFlagRecord(plain as Record<string, string | number | boolean>, table).values).toEqual(flags);
      }),
    );
  }
});

test('whatever words there are, a shell reads back exactly them', () => {
  const word = fc.string({ minLength: 1, unit: 'binary' }).filter((text) => !text.includes('\0'));
  fc.assert(
    fc.property(fc.array(word, { minLength: 1, maxLength: 4 }), (words) => {
      const echoed = execFileSync('sh', ['-c', renderCommand("printf '%s\\0'", words)]);
      expect(echoed.toString('utf8').split('\0').slice(0, -1)).toEqual(words);
    }),
    { numRuns: 25 },
  );
});

test('people see the command without keys', () => {
  const words = ['--tp', '8', '--api-key', 'sk-1', '--admin-api-key=sk-2', '--tokenizer-path', 'a b'];
  expect(renderCommand('vllm serve', words)).toBe("vllm serve --tp 8 --api-key sk-1 --admin-api-key=sk-2 --tokenizer-path 'a b'");
  expect(describeCommand('vllm serve', words)).toBe("vllm serve --tp 8 --api-key … --admin-api-key=… --tokenizer-path 'a b'");
});
