/**
 * An attached server that hangs, dies or is exchanged in mid-run: what the person is told, that nothing is done to it, and that the run
 * goes on by itself when it answers again. The engine is the lookalike, started by nobody of Aerie; limits pass on a fast clock.
 */
import { expect, test } from 'vitest';
import { type AttachProject, attachProject, type Foreign } from '../support/attach-project.ts';
import { isAlive, until } from '../support/child-processes.ts';
import { eventsOf } from '../support/launch-witness.ts';
import { expectEachOnce } from '../support/lookalike-project.ts';
import { hasSshd, startSshd } from '../support/sshd.ts';

/** Of the engine and of Aerie alike: eight minutes without a token are eight seconds. */
const CLOCK = { AERIE_CLOCK_RATE: '60' };
const FLAGS = ['--tp', '8', '--mem-fraction-static', '0.88', '--kv-cache-dtype', 'bf16'];
const LONG_ANSWERS = { answerTokens: { kind: 'fixed', tokens: 900 } };
const RUN = { 'in-flight': 4, sampling: { 'max-tokens': 1000, seed: 7 }, patience: '12h' };

async function fault({ port }: Foreign, body: object): Promise<void> {
  const reply = await fetch(`http://127.0.0.1:${port}/_lookalike/fault`, { method: 'POST', body: JSON.stringify(body) });
  expect(reply.status).toBeLessThan(300);
}

const answered = (project: AttachProject) => project.journal().filter(({ event }) => event === 'answered').length;
const verdicts = (project: AttachProject) => eventsOf(project, 'verdict.given');

test('it hangs behind an open port: said with its sign, what was asked is asked again when a person has started it anew', async () => {
  const project = attachProject(24);
  const flags = [...FLAGS, '--enable-metrics'];
  const first = await project.startForeign({ flags, scenario: LONG_ANSWERS });
  project.rewrite({ attach: `http://127.0.0.1:${first.port}` }, RUN);
  const run = project.start(['run', 'run.yaml'], { env: CLOCK });
  await until(() => answered(project) >= 4, 60_000);
  await fault(first, { do: 'scheduler-hangs', health: 'lies', when: {} });
  await run.line(/s: is hung in serving/);
  expect(run.stderr()).toMatch(/seen: no token for .* while 4 requests of Aerie wait; 8 min may pass/);
  expect(run.stderr()).toMatch(
    /Aerie did not start it, and neither stops it nor starts it again: that is yours\. The run goes on by itself/,
  );
  await until(() => run.stderr().includes('not ready (it hangs'), 60_000);
  expect(isAlive(first.pid())).toBe(true);
  const shown = await project.aerie(['status', 'run.yaml']);
  expect(shown.stdout).toMatch(/s: is hung in serving/);
  first.kill('SIGKILL');
  await until(async () => !(await first.isReady()));
  await project.startForeign({ port: first.port, flags, scenario: LONG_ANSWERS, output: '>>log 2>&1' });
  const ended = await run.ended;
  expect(ended.code, ended.stderr).toBe(0);
  expectEachOnce(project, 24);
  expect(ended.stderr).not.toContain('set aside');
  const hung = verdicts(project).filter(({ state }) => state === 'hung');
  expect(hung).toMatchObject([{ attached: true, confidence: 'high' }]);
  expect(eventsOf(project, 'server.verified').length).toBeGreaterThanOrEqual(2);
});

/** Answers of three seconds, so that the run lasts until it was told how the server is. */
const SLOWLY = { ...LONG_ANSWERS, faults: [{ when: {}, do: 'slow', ms: 300_000 }] };

async function dieAndComeBack(box: { readonly target: string; readonly env: NodeJS.ProcessEnv } | undefined): Promise<void> {
  const project = attachProject(24);
  const first = await project.startForeign({ flags: FLAGS, scenario: LONG_ANSWERS });
  const { port } = first;
  project.rewrite({ attach: box === undefined ? `http://127.0.0.1:${port}` : `ssh://${box.target}:${port}` }, RUN);
  const run = project.start(['run', 'run.yaml'], { env: { ...box?.env, ...CLOCK } });
  await until(() => answered(project) >= 4, 60_000);
  first.kill('SIGKILL');
  await run.line(/s: is crashed in serving/);
  await project.startForeign({ port, flags: FLAGS, scenario: SLOWLY, output: '>>log 2>&1' });
  await run.line(/s: is (ready|serving) again/);
  await fetch(`http://127.0.0.1:${port}/_lookalike/fault`, { method: 'DELETE' });
  const ended = await run.ended;
  expect(ended.code, ended.stderr).toBe(0);
  expectEachOnce(project, 24);
  expect(ended.stderr).toMatch(/line \d+: .*\n.*seen: .*\n.*\n.*Aerie did not start it/);
  expect(verdicts(project)).toContainEqual(expect.objectContaining({ attached: true, state: 'crashed' }));
}

test('it dies in mid-run: the line of its log that says so, and the run goes on on the same port', () =>
  dieAndComeBack(undefined));

test.runIf(hasSshd)('the same behind ssh', async () => dieAndComeBack(await startSshd()));
