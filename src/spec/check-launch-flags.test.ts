import { expect, test } from 'vitest';
import { AerieError } from '../base/errors.ts';
import { checkLaunchFlags } from './check-launch-flags.ts';
import { renderPath } from './problem.ts';
import { readRunFile } from './read-run-file.ts';

const MODEL = 'moonshotai/Kimi-K2.5';
const check = (server: Record<string, unknown>, model = MODEL) =>
  checkLaunchFlags({ model, servers: [{ engine: 'sglang', ...server }] }, ['servers', 0]).map(
    ({ path, at, message }) => `${renderPath(path)} (${at}) ${message}`,
  );

test.each<[Record<string, unknown>, string]>([
  [
    { port: 8000, flags: { port: 8001 } },
    'servers[0].flags.port (value) is 8001, and port: beside flags: is 8000; keep one of them',
  ],
  [{ flags: { host: '10.0.0.5' } }, 'servers[0].flags.host (value) is "10.0.0.5", where Aerie does not reach'],
  [{ flags: { '--host': 'gpu-1' } }, 'servers[0].flags.--host (value) is "gpu-1"'],
  [
    { flags: { 'model-path': '/m/k' } },
    `servers[0].flags.model-path (value) is "/m/k", and model: is "${MODEL}"; leave it out, or write served-model-name: ${MODEL}`,
  ],
  [{ engine: 'vllm', flags: { model: 'other' } }, 'servers[0].flags.model (value) is "other"'],
  [
    { engine: 'vllm', flags: { served_model_name: 'kimi' } },
    `servers[0].flags.served_model_name (value) is "kimi", and requests ask for model: "${MODEL}"`,
  ],
  [{ flags: { 'api-key': 'sk-12345678' } }, 'servers[0].flags.api-key (key) would stand on a command line'],
])('%j', (server, expected) => {
  const problems = check(server);
  expect(problems).toEqual([expect.stringContaining(expected)]);
  expect(problems.join()).not.toContain('sk-1234');
});

test.each<Record<string, unknown>>([
  { flags: { port: 8000 } },
  { port: 0, flags: { port: 8000 } },
  { port: 8000, flags: { port: '8000', host: '0.0.0.0' } },
  { flags: { 'model-path': `${MODEL}/` } },
  { flags: { 'model-path': '/m/k', 'served-model-name': MODEL } },
  { engine: 'vllm', flags: { model: '/m/k', 'served-model-name': ['kimi', MODEL] } },
  { attach: 'http://gpu:8000', flags: { port: 1 }, port: 2 },
  { engine: 'embedded', flags: { host: 'x' } },
  { flags: 'tp' },
  { flags: [1] },
])('%j says nothing twice', (server) => {
  expect(check(server)).toEqual([]);
});

test('the place in the run file is said', () => {
  const text =
    'run: r\nmodel: org/m\nservers:\n  - engine: sglang\n    port: 8000\n    flags:\n      tp: 8\n      port: 8001\npartitions: [{ name: B1, from: b.jsonl }]\n';
  let thrown: unknown;
  try {
    readRunFile(text, '/x/run.yaml');
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(AerieError);
  expect((thrown as AerieError).detail.evidence?.join()).toMatch(/run\.yaml:8:13.*servers\[0\]\.flags\.port/s);
});
