/** What the numbers of a machine mean: each verdict at its edge, with its numbers and what to type. */
import { expect, test } from 'vitest';
import type { DoctorCheck } from './finding.ts';
import { judgeFileSystem, judgeLatency, judgeLock, judgeMemory, judgeNode, judgeOpenFiles, judgeSpace } from './judge.ts';

const NONE = { inFlight: 0, servers: 0, partitions: 0, budgetTokens: 0, embedded: false };
const run = (over: object) => ({ ...NONE, servers: 1, partitions: 1, inFlight: 64, ...over });
const GIB = 2 ** 30;

function expectVerdict(check: DoctorCheck, verdict: DoctorCheck['verdict'], says: RegExp): void {
  expect(check, check.says).toMatchObject({ verdict, says: expect.stringMatching(says) });
  expect(check.next === '').toBe(verdict === 'ok');
}

test('node: the version that is needed, and platforms stated as they were tried', () => {
  const on = (version: string, platform = 'linux', arch = 'x64') => judgeNode({ version, platform, arch });
  expectVerdict(on('20.19.0'), 'ok', /^Node 20\.19\.0 on linux x64$/);
  expectVerdict(on('24.0.0'), 'ok', /24/);
  for (const version of ['18.20.0', '20.18.9']) expectVerdict(on(version), 'fails', /needs 20\.19/);
  expectVerdict(on('22.0.0', 'darwin', 'arm64'), 'warning', /tried on linux x64 only/);
});

test('open files: what the limit allows, against what the run asks for', () => {
  expectVerdict(judgeOpenFiles(20_000, NONE), 'ok', /20,000 files may be open, enough for 19,932 requests in flight/);
  expectVerdict(judgeOpenFiles(1024, NONE), 'warning', /enough for 956/);
  expectVerdict(judgeOpenFiles(1024, run({ inFlight: 956 })), 'ok', /956/);
  const short = judgeOpenFiles(1024, run({ inFlight: 957 }));
  expectVerdict(short, 'fails', /this run asks for 957/);
  expect(short.next).toMatch(/to 2,048, or lower in-flight/);
  expectVerdict(judgeOpenFiles(Number.POSITIVE_INFINITY, run({})), 'ok', /no limit/);
  expect(JSON.stringify(judgeOpenFiles(Number.POSITIVE_INFINITY, NONE).facts)).not.toContain('null');
});

test('memory and disk space, with the size that the budgets come to', () => {
  expectVerdict(judgeMemory({ totalBytes: 8 * GIB, freeBytes: GIB }), 'ok', /1 GiB of 8 GiB/);
  expectVerdict(judgeMemory({ totalBytes: 8 * GIB, freeBytes: GIB - 1 }), 'warning', /free/);
  expectVerdict(judgeSpace(GIB, NONE), 'ok', /1 GiB are free$/);
  expectVerdict(judgeSpace(GIB - 1, NONE), 'warning', /free/);
  expectVerdict(judgeSpace(2 ** 26 - 1, NONE), 'fails', /free/);
  expectVerdict(
    judgeSpace(4 * GIB, run({ budgetTokens: 400_000_000 })),
    'warning',
    /400,000,000 tokens\) come to about 4\.5 GiB/,
  );
  expectVerdict(judgeSpace(5 * GIB, run({ budgetTokens: 400_000_000 })), 'ok', /4\.5 GiB/);
});

test('fsync: the median counts, the worst is told', () => {
  expectVerdict(judgeLatency([3, 900, 2.04]), 'ok', /take 3 ms \(median of 3, worst 900 ms\)/);
  expectVerdict(judgeLatency([150, 160, 1]), 'warning', /150 ms/);
});

test('file systems: a network fails, memory and user space are warnings', () => {
  const on = (type: string) => judgeFileSystem('/x/runs/r', { at: '/x', type, source: 's' });
  for (const type of ['ext4', 'xfs', 'overlay', 'apfs', 'fuseblk']) expectVerdict(on(type), 'ok', /at \/x holds \/x\/runs\/r$/);
  for (const type of ['nfs4', 'cifs', '9p', 'fuse.sshfs', 'lustre']) expectVerdict(on(type), 'fails', /not what they say/);
  expectVerdict(on('tmpfs'), 'warning', /memory/);
  expectVerdict(on('fuse.mergerfs'), 'warning', /another program/);
  expectVerdict(judgeFileSystem('/x', undefined), 'warning', /does not say/);
});

test('locking: a second process must be refused while it is held, and served afterwards', () => {
  expectVerdict(judgeLock({ whileHeld: 'refused', afterwards: 'taken' }), 'ok', /refused/);
  expectVerdict(judgeLock({ whileHeld: 'taken', afterwards: 'taken' }), 'fails', /got a lock that was held/);
  expectVerdict(judgeLock({ whileHeld: 'refused', afterwards: 'refused' }), 'fails', /refused, refused/);
});
