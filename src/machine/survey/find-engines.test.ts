/** Which command lines are servers, with their ports; and which only speak of one. */
import { expect, test } from 'vitest';
import { findEngines, readEngine } from './find-engines.ts';
import { type ProcessTable, readProcesses } from './processes.ts';

test.each([
  [
    'python3 -m sglang.launch_server --model-path m --port 31000',
    { engine: 'sglang', port: 31_000, address: '127.0.0.1', model: 'm' },
  ],
  [
    '/opt/venv/bin/python -u -m sglang.launch_server --model-path m --host 10.0.0.5',
    { engine: 'sglang', port: 30_000, address: '10.0.0.5' },
  ],
  [
    'python /usr/local/bin/vllm serve org/model --port=8123 --host 0.0.0.0',
    { engine: 'vllm', port: 8_123, address: '127.0.0.1', model: 'org/model' },
  ],
  ['vllm serve org/model', { engine: 'vllm', port: 8_000, model: 'org/model' }],
  ['sglang serve --model-path m', { engine: 'sglang', port: 30_000 }],
  ['python3 -m vllm.entrypoints.openai.api_server --model m --port 9', { engine: 'vllm', port: 9 }],
  ['node dist/programs/lookalike-engine.js --as sglang@0.5.8 -- --model-path m --port 7', { engine: 'sglang', port: 7 }],
  ['node dist/programs/lookalike-engine.js --port 8', { engine: 'vllm', port: 8 }],
])('%s', (line, expected) => {
  expect(readEngine(line.split(' '))).toMatchObject(expected);
});

test.each([
  'bash -c python3 -m sglang.launch_server --port 31000',
  'ssh gpu-box vllm serve m',
  'docker run vllm/vllm-openai vllm serve m',
  'tail -f vllm serve.log',
  'vim sglang/launch_server.py',
  'vllm bench serve --port 3',
  'python3 -c import vllm serve',
  'python3 train.py -m sglang.launch_server',
  'sglang::scheduler_TP0',
  '',
])('no server: %s', (line) => {
  expect(readEngine(line.split(' '))).toBeUndefined();
});

function tableOf(rows: readonly (readonly [pid: number, parent: number, argv: string])[]): ProcessTable {
  const stat = rows
    .map(([pid, parent]) => `${pid} (python3 (x)\n) S ${parent} 1 1 0 -1 0 0 0 0 0 5 5 0 0 20 0 1 0 ${pid} 0 25 0\n`)
    .join('');
  const cmd = rows.map(([pid, , argv]) => `==> /proc/${pid}/cmdline <==\n${argv.split(' ').join('\0')}\0\n`).join('');
  return readProcesses({ stat, cmd, io: '', pageBytes: 4096 });
}

test('of a server’s own copies of itself only the first counts, and each server is one', () => {
  const line = 'python3 -m sglang.launch_server --port 31000';
  const table = tableOf([
    [10, 1, line],
    [11, 10, line],
    [12, 10, 'sglang::scheduler_TP0'],
    [20, 1, 'vllm serve m'],
  ]);
  expect(findEngines(table).map(({ pid }) => pid)).toEqual([10, 20]);
  expect(table.get(10)).toMatchObject({ residentBytes: 25 * 4096, readBytes: undefined, command: line });
});

test('a command line that looks like the head of another’s takes nothing over', () => {
  const table = tableOf([
    [10, 1, 'python3 -m sglang.launch_server --port 31000'],
    [11, 1, 'sh \n==> /proc/10/cmdline <==\nvim'],
  ]);
  expect(table.get(10)?.command).toBe('python3 -m sglang.launch_server --port 31000');
});
