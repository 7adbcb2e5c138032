/** `aerie probe` of the servers of a run file, and of an address and a log: real processes, ports and logs; the lookalike is the engine. */
import { expect, test } from 'vitest';
import { launchProject } from '../support/launch-project.ts';

const KEEPS = [{ forbid: { 'kv-cache': 'below-16-bit' }, because: 'it degrades the model', by: 'model owner' }];

test('nothing was launched yet: said so, and no', async () => {
  const project = await launchProject();
  const result = await project.aerie('probe', 'run.yaml', '--json');
  expect(result.code, result.stderr).toBe(1);
  const { data } = result.json();
  expect(data).toMatchObject({ state: 'absent', isWell: false, servers: [{ name: 's' }] });
  expect(data.unseen.join('\n')).toContain('Aerie has not launched it yet');
});

test('ready with every rule kept is yes: capacity, KV type, health, policy; the word is taken for a run, and a server by its name', async () => {
  const project = await launchProject({ run: { policy: KEEPS } });
  expect((await project.aerie('server', 'start', 'run.yaml')).code).toBe(0);
  const result = await project.aerie('probe', 'run.yaml', '--json');
  expect(result.code, result.stdout + result.stderr).toBe(0);
  const { data } = result.json();
  expect(data).toMatchObject({
    ...{ state: 'ready', cause: 'none', isWell: true, isReady: true },
    health: { kind: 'http', status: 200 },
    capacity: { poolTokens: 159_277, freeAfterGraphsGiB: 5.47, kvType: { type: 'bf16' } },
    policy: [{ rule: 'forbid kv-cache: below-16-bit', kept: true, broken: false }],
  });
  expect(data.taken).toMatch(/^run r of .*run\.yaml$/);
  expect(data.hypotheses.map(({ name }: { name: string }) => name)).toEqual(['loading', 'hung', 'crashed', 'busy']);
  expect(data.process).toMatchObject({ pid: project.book().current?.identity?.pid, presence: 'running', children: 8 });
  // The same from its folder, in words.
  const told = await project.aerie('probe', 'runs/r', '--server', 's');
  expect(told.code, told.stdout + told.stderr).toBe(0);
  expect(told.stdout).toContain('health     200 after');
  expect(told.stdout).toContain('an empty body is its usual answer');
  expect(told.stdout).toContain('policy     forbid kv-cache: below-16-bit: kept');
  expect(told.stdout).toContain('1 of 1 ready with no rule broken');
  // By its address alone: its process and its log are found by the port.
  const byUrl = await project.aerie('probe', '--url', `http://127.0.0.1:${project.port}`, '--json');
  expect(byUrl.code, byUrl.stdout + byUrl.stderr).toBe(0);
  expect(byUrl.json().data).toMatchObject({ state: 'ready', engine: 'sglang', capacity: { poolTokens: 159_277 } });
  expect(byUrl.json().data.log.path).toBe(project.path('runs/r/logs/s.log'));
  // An address has no run file: no rule is known, and none is claimed.
  const toldByUrl = await project.aerie('probe', '--url', `http://127.0.0.1:${project.port}`);
  expect(toldByUrl.stdout).toContain('well: 1 of 1 ready; ');
  expect(toldByUrl.stdout).toContain('rules of policy: a run file has them');
});

test('ready with a rule that is broken is no: a KV cache of 8 bits that no line of the log names', async () => {
  const project = await launchProject({ flags: { tp: 8, 'mem-fraction-static': 0.88 }, scenario: { hidesKvType: true } });
  expect((await project.aerie('server', 'start', 'run.yaml')).code).toBe(0);
  project.change({ run: { policy: KEEPS } });
  const result = await project.aerie('probe', 'run.yaml', '--json');
  expect(result.code, result.stdout + result.stderr).toBe(1);
  expect(result.json().data).toMatchObject({
    ...{ state: 'ready', isReady: true, isPolicyKept: false, isWell: false },
    capacity: { kvType: { bits: 8, how: 'bytes-per-token' } },
    policy: [{ rule: 'forbid kv-cache: below-16-bit', kept: false, broken: true, because: expect.stringContaining('8 bits') }],
  });
  const told = await project.aerie('probe', 'run.yaml');
  expect(told.stdout).toContain('BROKEN');
});
