/** What is left on the other machine when our side lets go, and what is told of it: kills, cuts and frozen cables. */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { test as anyTest, expect, onTestFinished } from 'vitest';
import { until } from '../support/child-processes.ts';
import { holdElsewhere, longTime, sleepers, textOf, wireTo } from '../support/ssh-bench.ts';
import { canStartSshd, startSshd, type TestSshd } from '../support/sshd.ts';

const test = anyTest.runIf(canStartSshd);

/** Two processes that would stay for years: one that the script waits for and one in the background. */
function stayFor(seconds: string): string {
  return `sleep ${seconds} & sleep ${seconds}`;
}

async function untilBothSleep(seconds: string): Promise<void> {
  await until(() => sleepers(seconds).length === 2);
}

async function untilNobodySleeps(seconds: string): Promise<void> {
  await until(() => sleepers(seconds).length === 0);
}

test('a script that takes too long is ended there with all that it has started', async () => {
  const wire = wireTo(await startSshd());
  const seconds = longTime();
  expect(await wire.run({ script: stayFor(seconds), timeoutMs: 1_500 })).toEqual({ kind: 'timeout' });
  await untilNobodySleeps(seconds);
  expect(textOf(await wire.run({ script: 'echo 1', timeoutMs: 60_000 }))).toBe('0|1\n|');
});

test('what a script leaves in the background ends with it', async () => {
  const wire = wireTo(await startSshd());
  const seconds = longTime();
  expect(textOf(await wire.run({ script: `sleep ${seconds} & echo 1`, timeoutMs: 60_000 }))).toBe('0|1\n|');
  await untilNobodySleeps(seconds);
});

test('an abort and a close end it there', async () => {
  const wire = wireTo(await startSshd());
  const [first, second] = [longTime(), longTime()];
  const aborter = new AbortController();
  const aborted = wire.run({ script: stayFor(first), timeoutMs: 600_000, signal: aborter.signal });
  const closed = wire.run({ script: stayFor(second), timeoutMs: 600_000 });
  await Promise.all([untilBothSleep(first), untilBothSleep(second)]);
  aborter.abort();
  expect(await aborted).toEqual({ kind: 'aborted' });
  await untilNobodySleeps(first);
  expect(sleepers(second)).toHaveLength(2);
  await wire.close();
  expect(await closed).toEqual({ kind: 'aborted' });
  await untilNobodySleeps(second);
  expect(await wire.run({ script: 'echo 1', timeoutMs: 60_000 })).toEqual({ kind: 'aborted' });
});

test('SIGKILL of Aerie ends it there', async () => {
  const sshd = await startSshd();
  const seconds = longTime();
  const aerie = holdElsewhere(sshd, 'script', stayFor(seconds));
  await untilBothSleep(seconds);
  aerie.kill('SIGKILL');
  await once(aerie, 'exit');
  await untilNobodySleeps(seconds);
});

test('a connection that is cut ends it there, and is told as lost', async () => {
  const sshd = await startSshd();
  const wire = wireTo(sshd);
  const seconds = longTime();
  const running = wire.run({ script: `echo half; ${stayFor(seconds)}`, timeoutMs: 600_000 });
  await untilBothSleep(seconds);
  await sshd.cable.cut();
  expect(await running).toMatchObject({ kind: 'lost', isConfiguration: false });
  await untilNobodySleeps(seconds);
  await sshd.cable.mend();
  expect(textOf(await wire.run({ script: 'echo 1', timeoutMs: 60_000 }))).toBe('0|1\n|');
});

test('a frozen cable is noticed, and is not taken for a script that takes too long', async () => {
  const sshd = await startSshd();
  const wire = wireTo(sshd);
  const [long, short] = [longTime(), longTime()];
  const running = [
    wire.run({ script: stayFor(long), timeoutMs: 600_000 }),
    wire.run({ script: stayFor(short), timeoutMs: 5_000 }),
  ];
  await Promise.all([untilBothSleep(long), untilBothSleep(short)]);
  sshd.cable.freeze();
  for (const reply of await Promise.all(running)) expect(reply).toMatchObject({ kind: 'lost', isConfiguration: false });
  expect(sleepers(long)).toHaveLength(2); // nobody has told them
  await sshd.cable.mend();
  await Promise.all([untilNobodySleeps(long), untilNobodySleeps(short)]);
  expect(textOf(await wire.run({ script: 'echo 1', timeoutMs: 60_000 }))).toBe('0|1\n|');
});

test('a cable that is frozen for a moment loses nothing', async () => {
  const sshd = await startSshd();
  const wire = wireTo(sshd);
  const running = wire.run({ script: ': >"$HOME/begun"; sleep 2; echo 1', timeoutMs: 60_000 });
  await untilThere(sshd, 'begun');
  sshd.cable.freeze();
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  await sshd.cable.mend();
  expect(textOf(await running)).toBe('0|1\n|');
});

test('what outlives the wire is ended by nothing of it', async () => {
  const sshd = await startSshd();
  const wire = wireTo(sshd);
  const request = (nth: number) => ({
    script: `trap '' PIPE; : >"$HOME/begun${nth}"; until test -e "$HOME/go"; do sleep 0.1; done; echo 1; : >"$HOME/done${nth}"`,
    timeoutMs: 60_000,
    outlives: true,
  });
  const aborter = new AbortController();
  const aborted = wire.run({ ...request(1), signal: aborter.signal });
  const cut = wire.run(request(2));
  await Promise.all([untilThere(sshd, 'begun1'), untilThere(sshd, 'begun2')]);
  aborter.abort();
  expect(await aborted).toEqual({ kind: 'aborted' });
  await sshd.cable.cut();
  expect(await cut).toMatchObject({ kind: 'lost' });
  await sshd.cable.mend();
  const seconds = longTime();
  const left = {
    script: `: >"$HOME/go"; sleep ${seconds} </dev/null >/dev/null 2>&1 & echo started`,
    timeoutMs: 60_000,
    outlives: true,
  };
  expect(textOf(await wire.run(left))).toBe('0|started\n|');
  await Promise.all([untilThere(sshd, 'done1'), untilThere(sshd, 'done2')]);
  const [sleeper] = sleepers(seconds);
  expect(sleeper).toBeDefined();
  onTestFinished(() => void process.kill(sleeper ?? 0, 'SIGKILL'));
});

async function untilThere(sshd: TestSshd, name: string): Promise<void> {
  await until(() => existsSync(join(sshd.home, name)));
}
