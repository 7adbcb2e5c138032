/** `aerie probe` finds the log where it stands: behind a pipe, in the journal (a program of tests), on the machine of a launch that is over, or here. */
import { spawn } from 'node:child_process';
import { expect, onTestFinished, test } from 'vitest';
import { attachProject } from '../support/attach-project.ts';
import { until } from '../support/child-processes.ts';
import { canMakeUnits, installFakeJournal, putIntoUnit } from '../support/fake-journal.ts';
import { freePort } from '../support/launch-bench.ts';
import { launchProject } from '../support/launch-project.ts';
import { hasSshd } from '../support/sshd.ts';

const FLAGS = ['--tp', '8', '--mem-fraction-static', '0.88', '--kv-cache-dtype', 'bf16'];
const HOLDS = { isReady: true, capacity: { poolTokens: 159_277, kvType: { type: 'bf16' } } };

test('what tee writes behind a pipe; a pipe to somebody who writes nothing is said by name', async () => {
  const project = attachProject();
  const [teed, lost] = await Promise.all([
    project.startForeign({ flags: FLAGS, output: '2>&1 | tee behind.log >/dev/null' }),
    project.startForeign({ flags: FLAGS, output: '2>&1 | cat >/dev/null' }),
  ]);
  const [byTee, byCat] = await Promise.all(
    [teed, lost].map(({ port }) => project.aerie(['probe', '--url', `http://127.0.0.1:${port}`, '--json'])),
  );
  expect(byTee?.json().data, byTee?.stdout).toMatchObject({ ...HOLDS, log: { path: project.path('behind.log') } });
  expect(byCat?.json().data.log).toBeUndefined();
  expect(byCat?.json().data.unseen.join('\n')).toMatch(/its log: \S+ \(pid \d+\) writes into a pipe to cat \(pid \d+\)/);
});

test.runIf(canMakeUnits())('the journal of a unit of systemd', async () => {
  const project = attachProject();
  const journal = installFakeJournal(project.folder);
  const port = await freePort();
  const [file = '', ...args] = project.commandOf({ flags: FLAGS, port });
  // Node's own pipes are sockets, as the journal's are.
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true, cwd: project.folder });
  onTestFinished(() => void process.kill(-(child.pid ?? 0), 'SIGKILL'));
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => (log += bytes.toString()));
  await until(() => log.includes('fired up and ready'), 60_000);
  putIntoUnit(child.pid ?? 0, 'aerie-probed.service');
  journal.add('aerie-probed.service', 'a'.repeat(32), ...log.trimEnd().split('\n'));
  const result = await project.aerie(['probe', '--url', `http://127.0.0.1:${port}`, '--json'], { env: journal.env });
  expect(result.json().data, result.stdout).toMatchObject({ ...HOLDS, log: { path: 'journalctl -u aerie-probed.service' } });
});

test.skipIf(!hasSshd)(
  'a launch over ssh that has ended: its log there',
  async () => {
    const project = await launchProject({ where: 'ssh' });
    expect((await project.aerie('server', 'start', 'run.yaml')).code).toBe(0);
    expect((await project.aerie('server', 'stop', 'run.yaml')).code).toBe(0);
    const result = await project.aerie('probe', 'run.yaml', '--json');
    expect(result.code, result.stdout + result.stderr).toBe(1);
    const { data } = result.json();
    expect(data, result.stdout).toMatchObject({ isReady: false, capacity: { poolTokens: 159_277 } });
    expect(data.log.path).toMatch(/\/\.aerie\/r-[0-9a-f]{8}\/logs\/s\.log$/);
    expect(data.unseen.join('\n')).toMatch(/no launch of it lives/);
  },
  240_000, // a launch and its end, over ssh
);
