/** A machine that is out of reach is waited for: cut and mended, too long, given up, wrong for good; and ways that come back. */
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test as anyTest, expect, onTestFinished } from 'vitest';
import type { AerieError } from '../../src/base/errors.ts';
import { runCommand } from '../../src/host/commands.ts';
import { systemClock } from '../../src/host/node-host.ts';
import type { ReachChange } from '../../src/machine/machine.ts';
import type { ShellWire } from '../../src/machine/shell-wire.ts';
import { openSshMachine } from '../../src/machine/ssh/open-ssh-machine.ts';
import { withPatience } from '../../src/machine/ssh/patience.ts';
import { untilOpen } from '../../src/machine/until-open.ts';
import { childrenOf, isAlive, until } from '../support/child-processes.ts';
import { serveHello } from '../support/hello-server.ts';
import { openSshBench } from '../support/shell-bench.ts';
import { holdElsewhere, hostOf, textOf, wayTo, wireTo } from '../support/ssh-bench.ts';
import { canStartSshd, startSshd, type TestSshd } from '../support/sshd.ts';

const test = anyTest.runIf(canStartSshd);

const TIME = { timeoutMs: 60_000, mayRepeat: true };

interface Patient {
  readonly wire: ShellWire;
  /** `away: WORDS`, `back`. */
  readonly changes: string[];
  readonly owner: AbortController;
}

function patientTo(sshd: TestSshd, patienceMs: number): Patient {
  const changes: string[] = [];
  const owner = new AbortController();
  onTestFinished(() => owner.abort());
  const onChange = ({ isAway, because, awayMs }: ReachChange) => {
    expect(awayMs > 0).toBe(!isAway);
    changes.push(isAway ? `away: ${because}` : 'back');
  };
  const options = {
    name: 'gpu-box',
    program: 'ssh',
    target: sshd.target,
    clock: systemClock,
    patienceMs,
    signal: owner.signal,
    onChange,
  };
  return { wire: withPatience(wireTo(sshd), options), changes, owner };
}

test('a cut in mid-script and a mend: it is run again, and all others have waited', async () => {
  const sshd = await startSshd();
  const { wire, changes } = patientTo(sshd, 60_000);
  const script = 'echo run >>"$HOME/runs"; until test -e "$HOME/go"; do sleep 0.05; done; echo done';
  const running = wire.run({ script, ...TIME });
  await until(() => runsOf(sshd) === 1);
  await sshd.cable.cut();
  await until(() => changes.length === 1);
  const others = Promise.all(Array.from({ length: 6 }, (_, nth) => wire.run({ script: `echo ${nth}`, ...TIME })));
  writeFileSync(join(sshd.home, 'go'), '');
  await sshd.cable.mend();
  expect(textOf(await running)).toBe('0|done\n|');
  expect((await others).map(textOf)).toEqual([0, 1, 2, 3, 4, 5].map((nth) => `0|${nth}\n|`));
  expect(runsOf(sshd)).toBe(2);
  expect(changes).toEqual([expect.stringMatching(/^away: ./), 'back']);
});

test('two outages are told apart', async () => {
  const sshd = await startSshd();
  const { wire, changes } = patientTo(sshd, 60_000);
  for (let outage = 0; outage < 2; outage++) {
    expect(textOf(await wire.run({ script: 'echo 1', ...TIME }))).toBe('0|1\n|');
    await sshd.cable.cut();
    const waiting = wire.run({ script: 'echo 2', ...TIME });
    await until(() => changes.length === outage * 2 + 1);
    await sshd.cable.mend();
    expect(textOf(await waiting)).toBe('0|2\n|');
  }
  expect(changes).toEqual([expect.stringContaining('away'), 'back', expect.stringContaining('away'), 'back']);
});

test('patience that is over says what is known, what is safe and what to type; the machine may still come back', async () => {
  const sshd = await startSshd();
  const { wire, changes } = patientTo(sshd, 1_500);
  expect(textOf(await wire.run({ script: 'echo 1', ...TIME }))).toBe('0|1\n|');
  await sshd.cable.cut();
  const refused = await refusalOf(wire.run({ script: 'echo 1', ...TIME }));
  expect(refused.code).toBe('machine.unreachable');
  expect(refused.message).toMatch(/^gpu-box cannot be reached for \d+ s: .*Connection refused/);
  expect(refused.detail.remedy).toContain('What runs there goes on');
  expect(refused.detail.remedy).toContain('ssh gpu-box true');
  expect(refused.detail.facts).toMatchObject({ machine: 'gpu-box', awayMs: expect.any(Number) });
  expect((await refusalOf(wire.run({ script: 'echo 1', ...TIME }))).code).toBe('machine.unreachable');
  expect(changes).toHaveLength(1);
  await sshd.cable.mend();
  expect(textOf(await wire.run({ script: 'echo 1', ...TIME }))).toBe('0|1\n|');
  expect(changes).toEqual([expect.stringContaining('away'), 'back']);
});

test('an owner who gives up ends all waiting, a question that is aborted only its own', async () => {
  const sshd = await startSshd();
  const { wire, changes, owner } = patientTo(sshd, 600_000);
  await sshd.cable.cut();
  const own = new AbortController();
  const first = wire.run({ script: 'echo 1', ...TIME, signal: own.signal });
  const second = refusalOf(wire.run({ script: 'echo 1', ...TIME }));
  await until(() => changes.length === 1);
  own.abort();
  expect(await first).toEqual({ kind: 'aborted' });
  owner.abort();
  expect((await second).code).toBe('machine.unreachable');
});

test('a machine that is closed while it is away lets go of whoever waits for it', async () => {
  const { machine, sshd } = await openSshBench({}, 600_000);
  const changes: ReachChange[] = [];
  machine.onReachChange((change) => changes.push(change));
  await sshd.cable.cut();
  const waiting = refusalOf(machine.gpus());
  await until(() => changes.length === 1);
  await machine.close();
  expect((await waiting).code).toBe('machine.unreachable');
});

test('a way that is asked for while its machine is closed is closed too', async () => {
  const { machine } = await openSshBench({});
  const before = childrenOf(process.pid);
  const coming = machine.reach(1);
  await machine.close();
  await coming;
  await new Promise((resolve) => setTimeout(resolve, 500)); // its ssh is there by then
  await until(() => childrenOf(process.pid).every((pid) => before.includes(pid)), 10_000);
});

test('a question that was aborted before it was asked looks for nothing', async () => {
  const sshd = await startSshd();
  writeFileSync(join(sshd.folder, 'authorized_keys'), '');
  const { wire } = patientTo(sshd, 500);
  await sshd.cable.cut();
  expect((await refusalOf(wire.run({ script: 'echo 1', ...TIME }))).code).toBe('machine.unreachable');
  await sshd.cable.mend();
  // Its look would be turned away for good, and nobody would hear of that: Node ends a process for such an error.
  expect(await wire.run({ script: 'echo 1', ...TIME, signal: AbortSignal.abort() })).toEqual({ kind: 'aborted' });
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  expect(sshd.log()).not.toContain('Failed publickey');
  expect((await refusalOf(wire.run({ script: 'echo 1', ...TIME }))).code).toBe('machine.refused');
});

test('what may not repeat is sent once: it waits before, and is lost at once after', async () => {
  const sshd = await startSshd();
  const { wire, changes } = patientTo(sshd, 60_000);
  const sendOnce = (script: string) => wire.run({ script, timeoutMs: 60_000 });
  await sshd.cable.cut();
  const early = sendOnce('echo 1');
  await until(() => changes.length === 1);
  await sshd.cable.mend();
  expect(textOf(await early)).toBe('0|1\n|');
  const cut = sendOnce('echo run >>"$HOME/runs"; sleep 600');
  await until(() => runsOf(sshd) === 1);
  await sshd.cable.cut();
  expect(await cut).toMatchObject({ kind: 'lost' });
  await sshd.cable.mend();
  expect(textOf(await wire.run({ script: 'echo 2', ...TIME }))).toBe('0|2\n|');
  expect(runsOf(sshd)).toBe(1);
});

test('a key that is refused is not waited for, unless the machine was reached before', async () => {
  const sshd = await startSshd();
  const keys = join(sshd.folder, 'authorized_keys');
  const right = readFileSync(keys);
  writeFileSync(keys, '');
  const { wire, changes } = patientTo(sshd, 600_000);
  expect((await refusalOf(wire.run({ script: 'echo 1', ...TIME }))).message).toContain('Permission denied (publickey)');
  expect(changes).toEqual([]);
  writeFileSync(keys, right);
  expect(textOf(await wire.run({ script: 'echo 1', ...TIME }))).toBe('0|1\n|');
  writeFileSync(keys, '');
  await sshd.cable.cut();
  await sshd.cable.mend();
  const waiting = wire.run({ script: 'echo 2', ...TIME });
  await until(() => changes.length === 1);
  writeFileSync(keys, right);
  expect(textOf(await waiting)).toBe('0|2\n|');
});

test('a script whose shell is killed there every time does not repeat for ever', async () => {
  const sshd = await startSshd();
  const { wire } = patientTo(sshd, 600_000);
  const refused = await refusalOf(wire.run({ script: 'kill -9 0', ...TIME }));
  expect(refused.detail.because).toContain('it was cut off 10 times, and the machine answers');
});

test('a way to a machine that lets nobody in is refused; one that was open waits', async () => {
  const sshd = await startSshd();
  const keys = join(sshd.folder, 'authorized_keys');
  const right = readFileSync(keys);
  const port = await serveHello((url) => `hello ${url}`);
  const opened = async (where: Parameters<typeof wayTo>[0]) => {
    const way = await wayTo(where, port);
    await untilOpen(way, systemClock, systemClock.elapsed() + 60_000, new AbortController().signal);
    return way;
  };
  const way = await opened(sshd);
  writeFileSync(keys, '');
  const message = expect.stringContaining('Permission denied (publickey)');
  await expect(opened(sshd)).rejects.toMatchObject({ code: 'machine.refused', message });
  const before = deniedOf(sshd);
  await sshd.cable.cut();
  await sshd.cable.mend();
  await until(() => deniedOf(sshd) > before);
  await systemClock.sleep(300, new AbortController().signal); // ssh tells us, too
  expect([way.isOpen(), way.refusal()]).toEqual([false, undefined]);
  writeFileSync(keys, right);
  const nowhere = { ...sshd, env: { AERIE_SSH: join(sshd.folder, 'no-ssh') } };
  await expect(opened(nowhere)).rejects.toMatchObject({ message: expect.stringContaining('no-ssh is not installed here') });
});

function deniedOf(sshd: TestSshd): number {
  return sshd.log().match(/closed by authenticating user/g)?.length ?? 0;
}

test('what is advised meets what was met, and passes where all is well', async () => {
  const well = await startSshd();
  const [forced, locked] = [await startSshd({ sshdConfig: ['ForceCommand echo hello'] }), await startSshd()];
  writeFileSync(join(locked.folder, 'authorized_keys'), '');
  const type = async (sshd: Pick<TestSshd, 'env' | 'target'>) => {
    const machine = openSshMachine({ ...sshd, host: hostOf(sshd), patienceMs: 0, signal: new AbortController().signal });
    const { detail } = await machine.home().then(
      () => expect.fail('it was reached'),
      (thrown: AerieError) => thrown,
    );
    const line = /^ {2}(.+)$/m.exec(detail.remedy)?.[1] ?? '';
    const typed = (at: string) => runCommand({ file: 'sh', args: ['-c', at], env: process.env, timeoutMs: 60_000 });
    const there = line.replace(String(sshd.env['AERIE_SSH']), String(well.env['AERIE_SSH']));
    return { ...(await typed(line)), well: await typed(there) };
  };
  expect(await type(locked)).toMatchObject({ code: 255, well: { code: 0 } });
  expect(await type(forced)).toMatchObject({ stdout: 'hello', well: { stdout: 'sh works' } });
  const nowhere = { ...well, env: { AERIE_SSH: join(well.folder, 'no-ssh') } };
  expect(await type(nowhere)).toMatchObject({ code: 127, well: { code: 0, stderr: expect.stringMatching(/^OpenSSH/) } });
});

test('a way survives a cut and comes back on the same port', async () => {
  const sshd = await startSshd();
  const way = await wayTo(sshd, await serveHello((url) => `hello ${url}`));
  const { baseUrl } = way;
  for (let drops = 0; drops < 2; drops++) {
    await until(() => way.isOpen());
    expect(await ask(`${way.baseUrl}/a`)).toBe('hello /a');
    expect(way.drops()).toBe(drops);
    await sshd.cable.cut();
    await until(() => !way.isOpen());
    expect(await ask(way.baseUrl)).toBe('ECONNREFUSED');
    await sshd.cable.mend();
  }
  await until(() => way.isOpen());
  expect(way.baseUrl).toBe(baseUrl);
  await way.close();
  expect(way.isOpen()).toBe(false);
  expect(await ask(baseUrl)).toBe('ECONNREFUSED');
});

test('a way that is asked for while the machine is away comes when it comes', async () => {
  const sshd = await startSshd();
  await sshd.cable.cut();
  const way = await wayTo(sshd, await serveHello((url) => `hello ${url}`));
  expect(way.isOpen()).toBe(false);
  await sshd.cable.mend();
  await until(() => way.isOpen());
  expect(await ask(way.baseUrl)).toBe('hello /');
  expect(way.drops()).toBe(0);
});

test('a way over a cable that is frozen is noticed to be gone', async () => {
  const sshd = await startSshd();
  const way = await wayTo(sshd, await serveHello((url) => `hello ${url}`));
  await until(() => way.isOpen());
  sshd.cable.freeze();
  await until(() => !way.isOpen(), 60_000);
  await sshd.cable.mend();
  await until(() => way.isOpen());
  expect(await ask(way.baseUrl)).toBe('hello /');
  expect(way.drops()).toBe(1);
});

test("ports of the user's own config are none of a way's business", async () => {
  const taken = await serveHello((url) => `hello ${url}`);
  const sshd = await startSshd({ sshConfig: [`LocalForward 127.0.0.1:${taken} 127.0.0.1:1`, 'ExitOnForwardFailure yes'] });
  const way = await wayTo(sshd, taken);
  await until(() => way.isOpen());
  expect(await ask(way.baseUrl)).toBe('hello /');
});

test('a way to where nobody listens is open, and drops what comes', async () => {
  const sshd = await startSshd();
  const way = await wayTo(sshd, 1);
  await until(() => way.isOpen());
  expect(await ask(way.baseUrl)).toMatch(/ECONNRESET|UND_ERR_SOCKET/);
  expect(way.isOpen()).toBe(true);
});

test('SIGKILL of Aerie ends its way', async () => {
  const sshd = await startSshd();
  const aerie = holdElsewhere(sshd, 'way', String(await serveHello((url) => `hello ${url}`)));
  const [said] = await once(aerie.stdout, 'data');
  const baseUrl = String(said).trim();
  expect(await ask(baseUrl)).toBe('hello /');
  const left = childrenOf(aerie.pid ?? 0);
  expect(left).toHaveLength(1);
  aerie.kill('SIGKILL');
  await until(() => !left.some(isAlive));
  expect(await ask(baseUrl)).toBe('ECONNREFUSED');
});

function runsOf(sshd: TestSshd): number {
  const file = join(sshd.home, 'runs');
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0;
}

async function refusalOf(answer: Promise<unknown>): Promise<AerieError> {
  const thrown = await answer.then(
    (value) => new Error(`it was answered: ${JSON.stringify(value)}`),
    (error: unknown) => error,
  );
  return thrown as AerieError;
}

/** The body, or the code of what went wrong. */
async function ask(url: string): Promise<string> {
  try {
    return await (await fetch(url, { headers: { connection: 'close' } })).text();
  } catch (thrown) {
    const { cause } = thrown as { cause?: { code?: string } };
    return cause?.code ?? String(thrown);
  }
}
