/** What the kernel writes, as it writes it, and with names that programs have chosen to confuse a reader. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { containerOf, memoryFolders, memoryLeft } from './cgroup.ts';
import { listeningInodes } from './listeners.ts';
import { parseStat } from './parse-stat.ts';

describe('/proc/PID/stat', () => {
  const line = (name: string) =>
    `4242 (${name}) S 7 4242 4100 0 -1 4194304 7 8 0 0 11 22 0 0 20 0 5 0 987654 1000000 2000 18446744073709551615 0 0\n`;
  test('whatever the name is', () => {
    const expected = { pid: 4242, state: 'S', parent: 7, session: 4100, cpuTicks: 33, startTicks: 987654 };
    for (const name of ['python3', 'a) R 1 1 1 (b', ')', '((', '', 'a b\nc', ') Z 1'])
      expect(parseStat(line(name))).toEqual({ ...expected, name });
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 15 }), (name) => {
        expect(parseStat(line(name))).toEqual({ ...expected, name });
      }),
    );
  });
  test('other text is nobody', () => {
    for (const text of ['', '4242', '4242 (x) S 7', 'x (x) S 7 1 1'.repeat(9), ') (']) expect(parseStat(text)).toBeUndefined();
  });
});

describe('/proc/PID/cgroup', () => {
  const hex = '0123456789abcdef'.repeat(4);
  test.each([
    [`0::/system.slice/docker-${hex}.scope\n`, 'docker-0123456789ab'],
    [`12:memory:/docker/${hex}\n0::/docker/${hex}\n`, 'docker-0123456789ab'],
    [`0::/machine.slice/libpod-${hex}.scope/container\n`, 'libpod-0123456789ab'],
    [`0::/lxc/101/ns/system.slice\n`, 'lxc/101'],
    [`0::/lxc.payload.101/init.scope\n`, 'lxc/101'],
    [
      `0::/kubepods.slice/kubepods-burstable.slice/kubepods-pod1.slice/cri-containerd-${hex}.scope\n`,
      'cri-containerd-0123456789ab',
    ],
    [`0::/kubepods/besteffort/pod1234/${hex}\n`, 'kubernetes-0123456789ab'],
    [`0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0\n`, 'slurm/77'],
    ['0::/user.slice/user-1000.slice/session-3.scope\n', ''],
    ['0::/\n', ''],
    ['', ''],
  ])('%j', (text, container) => expect(containerOf(text)).toBe(container));

  test('a limit above holds too', () => {
    expect(memoryFolders('0::/a/b\n').map(({ folder }) => folder)).toEqual([
      '/sys/fs/cgroup/a/b',
      '/sys/fs/cgroup/a',
      '/sys/fs/cgroup',
    ]);
    expect(memoryFolders('4:memory:/x\n1:cpu:/\n0::/\n').map(({ version, folder }) => `${version} ${folder}`)).toEqual([
      '1 /sys/fs/cgroup/memory/x',
      '1 /sys/fs/cgroup/memory',
      '2 /sys/fs/cgroup',
    ]);
  });

  test('what a limit leaves: files that can be dropped are not used', () => {
    expect(memoryLeft('1000\n', '900\n', 'anon 5\ninactive_file 300\nactive_file 9\n')).toBe(400);
    expect(memoryLeft('1000\n', '900\n', 'total_inactive_file 300\n')).toBe(400);
    expect(memoryLeft('1000', '1200', '')).toBe(0);
    expect(memoryLeft('max\n', '900\n', '')).toBeUndefined();
    expect(memoryLeft('', '', '')).toBeUndefined();
  });
});

test('/proc/net/tcp: the socket that listens, not one that talks', () => {
  const table = [
    '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode',
    '   0: 0100007F:1F40 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 111 1 0000000000000000 100 0 0 10 0',
    '   1: 0100007F:1F40 0100007F:C001 01 00000000:00000000 00:00000000 00000000     0        0 222 1 0000000000000000 20 4 30 10 -1',
    '   2: 00000000:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 333 1 0000000000000000 100 0 0 10 0',
  ].join('\n');
  expect(listeningInodes(table, 8000)).toEqual(['111']);
  expect(listeningInodes(table, 80)).toEqual(['333']);
  expect(listeningInodes(table, 49153)).toEqual([]);
  expect(listeningInodes('', 80)).toEqual([]);
});
