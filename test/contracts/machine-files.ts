/** What every machine keeps about files, and about names that programs choose: part of the contract in `machine.ts`. */
import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { until } from '../support/child-processes.ts';
import { launchOf, presenceOf, readLog, type StarterBench } from '../support/machine-bench.ts';

export function describeFiles(open: () => Promise<StarterBench>): void {
  test('has a home folder', async () => {
    const { machine } = await open();
    const home = await machine.home();
    expect(home).toMatch(/^\//);
    expect(await machine.run({ file: 'test', args: ['-d', home], timeoutMs: 60_000 })).toMatchObject({ kind: 'ended', code: 0 });
  });

  test('gives a big file of any bytes in slices, exactly', async () => {
    const bench = await open();
    const path = `${bench.folder}/-it's $(big)\n"file"`;
    await inShell(bench, 'head -c 3000000 /dev/urandom >"$1"', path);
    const sum = /^\\?([0-9a-f]{64})/.exec(await inShell(bench, 'sha256sum -- "$1"', path))?.[1]; // `\`: a name of two lines
    const hash = createHash('sha256');
    for (let offset = 0; offset < 3_000_000; ) {
      const slice = await bench.machine.readFile(path, offset, 1_048_573); // a prime below 1 MiB
      expect(slice?.size).toBe(3_000_000);
      if (slice === undefined || slice.bytes.length === 0) break;
      hash.update(slice.bytes);
      offset += slice.bytes.length;
    }
    expect(hash.digest('hex')).toBe(sum);
  });

  test('says the size of what is there now: a file that was cut, and one that took its name', async () => {
    const bench = await open();
    const path = `${bench.folder}/log`;
    const read = async (offset: number) => {
      const slice = await bench.machine.readFile(path, offset, 100);
      return slice && [new TextDecoder().decode(slice.bytes), slice.size];
    };
    await inShell(bench, 'printf 0123456789 >"$1"', path);
    expect(await read(4)).toEqual(['456789', 10]);
    await inShell(bench, 'printf ab >"$1"', path);
    expect(await read(4)).toEqual(['', 2]);
    await inShell(bench, 'mv "$1" "$1.1"; printf abcdef >"$1"', path);
    expect(await read(4)).toEqual(['ef', 6]);
    await inShell(bench, 'mv "$1" "$1.2"', path);
    expect(await read(4)).toBeUndefined();
  });

  test('waits for nobody where a pipe or a device has the name', async () => {
    const bench = await open();
    await inShell(bench, 'mkfifo "$1"', `${bench.folder}/pipe`);
    expect(await bench.machine.readFile(`${bench.folder}/pipe`, 0, 10)).toBeUndefined();
    expect(await bench.machine.readFile('/dev/zero', 0, 10)).toBeUndefined();
  });

  test('is not confused by what a program calls itself', async () => {
    const bench = await open();
    const { machine } = bench;
    // Its name ends a line of /proc/PID/stat early and begins another's; its words are a file of process 1 in every frame.
    const name = 'z) R 1 1\\n1 (y';
    const words = '\\n==> /proc/1/stat <==\\n1 (init) Z 0 1 1 0 -1 0';
    const perl = bench.tool?.('perl') ?? 'perl';
    const script = `$0 = "${words}"; open(F, ">", "/proc/self/comm"); print F "${name}"; close F; $| = 1; print "up"; sleep 1000`;
    const launch = launchOf(bench, `${perl} -e '${script}'`);
    const identity = await machine.start(launch);
    await until(async () => (await readLog(machine, launch)) === 'up');
    const { main, family } = await machine.look(identity, launch);
    expect(main).toBe('running');
    expect(family.map(({ pid }) => pid)).not.toContain(1);
    expect(family.find(({ pid }) => pid === identity.pid)?.command).toContain('/proc/1/stat');
    expect((await machine.findByMarker(launch.marker)).map(({ pid }) => pid)).toContain(identity.pid);
    expect(await machine.signal(identity, 'SIGTERM')).toBe('sent');
    await until(async () => (await presenceOf(machine, launch, identity)) === 'gone 143');
  });
}

async function inShell({ machine }: StarterBench, script: string, path: string): Promise<string> {
  const result = await machine.run({ file: 'sh', args: ['-c', script, 'sh', path], timeoutMs: 60_000 });
  expect(result).toMatchObject({ kind: 'ended', code: 0 });
  return result.kind === 'ended' ? result.stdout : '';
}
