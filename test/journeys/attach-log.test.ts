/** A server that somebody else started, and its log: what it really is, what a missing log costs, and that it is never ended. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { proves } from '../proves.ts';
import { attachProject } from '../support/attach-project.ts';
import { isAlive, until } from '../support/child-processes.ts';
import { eventsOf } from '../support/launch-witness.ts';
import { expectEachOnce } from '../support/lookalike-project.ts';
import { query } from '../support/run-folder.ts';

proves('attach:never-stopped', 'its log is found, what it holds is known, and it lives on', async () => {
  const project = attachProject();
  const foreign = await project.startForeign({
    flags: ['--tp', '8', '--mem-fraction-static', '0.88', '--kv-cache-dtype', 'bf16'],
  });
  project.rewrite({ attach: `http://127.0.0.1:${foreign.port}` });
  const run = await project.aerie(['run', 'run.yaml']);
  expect(run.code, run.stderr).toBe(0);
  expectEachOnce(project, 4);
  expect(run.stderr).toContain(`s: its log is ${project.path('log')} (`);
  expect(run.stderr).toMatch(/s: verified: holds \d[\d,]+ tokens, KV cache bf16 \(by log-line\), \d+\.\d\d GiB left/);
  expect(run.stderr).not.toContain('not known');
  expect(isAlive(foreign.pid())).toBe(true);
});

const RULE = { forbid: { 'kv-cache': 'below-16-bit' }, because: 'FP8 KV degrades it', by: 'model owner' };

proves(
  'attach:never-stopped',
  'FP8 that only its log gives away breaks the rule: nothing is asked of it, and it lives on',
  async () => {
    const project = attachProject();
    const foreign = await project.startForeign({ scenario: { hidesKvType: true } });
    project.rewrite({ attach: `http://127.0.0.1:${foreign.port}` }, { policy: [RULE] });
    const run = await project.aerie(['run', 'run.yaml', '--json']);
    expect(run.code, run.stderr).toBe(5);
    expect(run.json().error).toMatchObject({ code: 'policy.broken', message: expect.stringMatching(/KV cache.* 8 bits/) });
    expect(eventsOf(project, 'server.verified')).toMatchObject([{ kvCacheDtype: 'fp8', how: 'bytes-per-token' }]);
    expect(project.journal().filter(({ event }) => event === 'received')).toEqual([]);
    expect(isAlive(foreign.pid())).toBe(true);
  },
);

test('another server at the same address in mid-run is looked at anew, though it says the same of itself', async () => {
  const project = attachProject(60);
  const flags = ['--tp', '8', '--mem-fraction-static', '0.88'];
  const scenario = { answerTokens: { kind: 'fixed', tokens: 60 } };
  const first = await project.startForeign({ flags, scenario: { ...scenario, hidesKvType: 'bf16' } });
  project.rewrite({ attach: `http://127.0.0.1:${first.port}` }, { policy: [RULE], 'in-flight': 1 });
  const run = project.start(['run', 'run.yaml', '--json']);
  await until(() => project.journal().filter(({ event }) => event === 'answered').length > 2);
  const asked = () => project.journal().filter(({ event }) => event === 'received').length;
  first.kill('SIGKILL');
  await until(async () => !(await first.isReady()));
  const before = asked();
  const second = await project.startForeign({ port: first.port, flags, scenario: { ...scenario, hidesKvType: true } });
  const ended = await run.ended;
  expect(ended.code, ended.stderr).toBe(5);
  expect(ended.json().error).toMatchObject({ code: 'policy.broken' });
  expect(asked()).toBe(before);
  expect(isAlive(second.pid())).toBe(true);
});

test('without a log it is said what was seen and what that costs, and the run goes on', async () => {
  const project = attachProject();
  const foreign = await project.startForeign({
    as: 'vllm@0.11.0',
    flags: ['-tp', '8', '--max-model-len', '32768'],
    output: '2>&1 | cat >/dev/null',
  });
  project.rewrite({ engine: 'vllm', attach: `http://127.0.0.1:${foreign.port}` });
  const run = await project.aerie(['run', 'run.yaml']);
  expect(run.code, run.stderr).toBe(0);
  expectEachOnce(project, 4);
  expect(run.stderr).toMatch(/s: \S+ \(pid \d+\) writes into a pipe to cat \(pid \d+\)\n/);
  expect(run.stderr).toContain('Should it end, nothing says why');
  expect(run.stderr).toContain('its health and by its tokens alone');
  expect(eventsOf(project, 'server.log-missing')).toHaveLength(1);
});

test('the log of another server is not taken for its own', async () => {
  const project = attachProject();
  await project.startForeign({ flags: ['--tp', '8', '--kv-cache-dtype', 'bf16'], output: '>other.log 2>&1' });
  const foreign = await project.startForeign({
    ...{ flags: ['--tp', '8', '--kv-cache-dtype', 'fp8_e4m3', '--mem-fraction-static', '0.85'], output: '>/dev/null 2>&1' },
  });
  project.rewrite({ attach: `http://127.0.0.1:${foreign.port}`, log: project.path('other.log') }, { policy: [RULE] });
  const run = await project.aerie(['run', 'run.yaml']);
  expect(run.code, run.stderr).toBe(5);
  expect(run.stderr).toMatch(/other\.log is not its log: its pool holds [\d,]+ tokens, and that of the server [\d,]+/);
  expect(run.stderr).toContain('policy.broken');
});

describe.each(['SIGINT', 'SIGKILL'] as const)('%s to Aerie', (signal) => {
  proves('attach:never-stopped', 'it lives on, and the same command goes on', () => endAndGoOn(signal));
});

async function endAndGoOn(signal: 'SIGINT' | 'SIGKILL'): Promise<void> {
  const project = attachProject(20);
  const foreign = await project.startForeign({ scenario: { answerTokens: { kind: 'fixed', tokens: 60 } } });
  project.rewrite({ attach: `http://127.0.0.1:${foreign.port}` }, { 'in-flight': 2 });
  const run = project.start(['run', 'run.yaml']);
  await until(() => project.journal().some(({ event }) => event === 'answered'));
  run.kill(signal);
  await run.ended;
  expect(isAlive(foreign.pid())).toBe(true);
  const again = await project.aerie(['run', 'run.yaml']);
  expect(again.code, again.stderr).toBe(0);
  expectEachOnce(project, 20);
  expect(isAlive(foreign.pid())).toBe(true);
}

test('a locked server: the key is shown nowhere, though its command line and its log have it; a wrong one is said', async () => {
  const key = 'hunter2-hunter2-hunter2';
  const project = attachProject();
  const foreign = await project.startForeign({ flags: ['--tp', '8', '--api-key', key] });
  expect(readFileSync(project.path('log'), 'utf8')).toContain(key);
  project.rewrite({ attach: `http://127.0.0.1:${foreign.port}`, 'api-key': '$ENGINE_KEY' });
  const wrong = await project.aerie(['run', 'run.yaml'], { env: { ENGINE_KEY: 'not-the-key-not-the-key' } });
  expect(wrong.code, wrong.stderr).toBe(4);
  expect(wrong.stderr).toMatch(/server\.rejects[\s\S]*answered 401[\s\S]*api-key: \$NAME/);
  expect(wrong.stderr).not.toContain('not-the-key-not-the-key');
  const run = await project.aerie(['run', 'run.yaml'], { env: { ENGINE_KEY: key } });
  expect(run.code, run.stderr).toBe(0);
  expectEachOnce(project, 4);
  expect(run.stderr + run.stdout).not.toContain(key);
  const found = spawnSync('grep', ['-rlaF', key, project.path('runs')], { encoding: 'utf8' });
  expect(found.stdout).toBe('');
  const [launch] = query(project.runFolder, 'SELECT detail FROM launches');
  expect(JSON.parse(String(launch?.['detail']))).toMatchObject({ flags: { tp: '8', 'api-key': '[secret]' } });
});
