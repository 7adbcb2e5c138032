/** What /proc says of where processes write to. The scripts run against real processes in `test/contracts/find-log.test.ts`. */
import { expect, test } from 'vitest';
import { judgeOutputs, judgeReaders } from './judge-outputs.ts';
import { type Output, type ProcessOutputs, parseOutputs, parseReaders, parseWrittenFiles, unitOf } from './process-outputs.ts';

const stat = (pid: number, parent: number) => `${pid} (a) b) S ${parent} ${pid} ${pid} 0 -1 4 0 0 0 0 1 2 0 0 20 0 1 0 99 0 0`;
const nowhere = (descriptor: 1 | 2): Output => ({ descriptor, kind: 'nowhere', target: '/dev/null', isByName: true });
const row = (pid: number, over: Partial<ProcessOutputs> = {}): ProcessOutputs => ({
  ...{ pid, name: 'python3', parent: 1, session: 10, cgroup: '0::/', user: 'root', isVisible: true, words: ['python3'] },
  outputs: [nowhere(1), nowhere(2)],
  ...over,
});
const to = (kind: Output['kind'], target: string, isByName = true): readonly Output[] => [
  { descriptor: 1, kind, target, isByName },
  { descriptor: 2, kind, target, isByName },
];
const judge = (...processes: ProcessOutputs[]) => judgeOutputs({ me: 'me', processes }, 10, 'stderr');

test('records of the script are read, names with newlines and parentheses too', () => {
  const fields = ['process', '10', stat(10, 9), 'vllm\nserve\n--api-key\nx', '0::/', 'root', 'seen'];
  const outputs = ['file', '/a\nb', 'same', 'device', '/dev/pts/3', 'same'];
  const { me, processes } = parseOutputs(['me', 'root', ...fields, ...outputs, 'process', '9', 'torn'].join('\0'));
  expect(me).toBe('root');
  expect(processes).toMatchObject([
    {
      ...{ pid: 10, parent: 9, words: ['vllm', 'serve', '--api-key', 'x'], isVisible: true },
      outputs: [
        { kind: 'file', target: '/a\nb', isByName: true },
        { kind: 'terminal', target: '/dev/pts/3' },
      ],
    },
  ]);
  expect(parseOutputs('noise')).toEqual({ me: '', processes: [] });
});

test('the stream that the engine logs to comes first, the other one where it is no file', () => {
  const both = row(10, {
    outputs: [
      { descriptor: 1, kind: 'file', target: '/out', isByName: true },
      { descriptor: 2, kind: 'file', target: '/err', isByName: true },
    ],
  });
  expect(judge(both)).toMatchObject({ log: { kind: 'file', path: '/err' } });
  expect(judgeOutputs({ me: '', processes: [both] }, 10, 'stdout')).toMatchObject({ log: { path: '/out' } });
  expect(judge(row(10, { outputs: [nowhere(2), ...to('file', '/out').slice(0, 1)] }))).toMatchObject({ log: { path: '/out' } });
});

test('a file without its name is read through the process, and one that is called so is not taken for it', () => {
  expect(judge(row(10, { outputs: to('file', '/log (deleted)', false) }))).toMatchObject({
    log: { path: '/log', readPath: '/proc/10/fd/2', isDeleted: true },
  });
  expect(judge(row(10, { outputs: to('file', '/log (deleted)', true) }))).toMatchObject({
    log: { path: '/log (deleted)', readPath: '/log (deleted)', isDeleted: false },
  });
  // Another mount namespace: the same name is another file here.
  expect(judge(row(10, { outputs: to('file', '/log', false) }))).toMatchObject({ log: { readPath: '/proc/10/fd/2' } });
});

test('kin are asked only where its own output goes nowhere, and only those of its session or below it', () => {
  const parent = row(9, { outputs: to('file', '/of-parent') });
  expect(judge(row(10, { parent: 9 }), parent)).toMatchObject({ log: { path: '/of-parent', process: { pid: 10 } } });
  expect(judge(row(10, { parent: 9 }), { ...parent, session: 1 })).toMatchObject({ log: { kind: 'none' } });
  expect(judge(row(10), row(11, { parent: 10, session: 3, outputs: to('file', '/of-child') }))).toMatchObject({
    log: { path: '/of-child' },
  });
  expect(judge(row(10, { outputs: to('terminal', '/dev/pts/3') }), parent)).toMatchObject({
    log: { kind: 'none', because: 'python3 (pid 10) writes to a terminal (/dev/pts/3)' },
  });
});

test('journal, docker, a pipe, and what is not shown', () => {
  expect(judge(row(10, { outputs: to('socket', 'socket:[1]', false), cgroup: '0::/system.slice/sglang.service' }))).toMatchObject(
    {
      kind: 'ask-journal',
      unit: 'sglang.service',
    },
  );
  const id = 'ab'.repeat(32);
  expect(judge(row(10, { cgroup: `0::/system.slice/docker-${id}.scope` }))).toMatchObject({ container: id.slice(0, 12) });
  expect(judge(row(10, { outputs: to('pipe', 'pipe:[4711]', false) }))).toMatchObject({ kind: 'ask-readers', inode: '4711' });
  expect(judge(row(10, { isVisible: false, user: 'alice', words: ['vllm', '--api-key', 'hunter22'] }))).toMatchObject({
    log: {
      because: 'vllm (pid 10) belongs to user alice, and where it writes is not shown to user me',
      remedy: expect.stringContaining('sudo readlink /proc/10/fd/1'),
    },
  });
  expect(judge()).toMatchObject({ log: { because: 'no process 10 is to be seen' } });
});

test('a reader of the pipe that writes one file writes the log', () => {
  const files = [{ descriptor: 3, path: '/log', isByName: true }];
  const server = { pid: 10, words: ['python3'] };
  expect(judgeReaders(server, [{ pid: 11, name: 'tee', files }])).toMatchObject({ kind: 'file', path: '/log' });
  const two = [...files, { descriptor: 4, path: '/other', isByName: true }];
  expect(judgeReaders(server, [{ pid: 11, name: 'supervisord', files: two }])).toMatchObject({
    because: 'python3 (pid 10) writes into a pipe to supervisord (pid 11)',
  });
  expect(judgeReaders(server, [])).toMatchObject({ because: expect.stringContaining('who reads it may not be seen') });
  expect(parseReaders('/proc/11/fd:\n/proc/11/fd:\n/proc/12/fd:\nx\n')).toEqual([11, 12]);
  expect(parseWrittenFiles('tee\x003\0/log\0same\0')).toEqual({ name: 'tee', files });
});

test('units of systemd, of users too, on both versions of cgroups', () => {
  expect(unitOf('0::/system.slice/sglang.service')).toEqual({ unit: 'sglang.service', isOfUser: false });
  expect(unitOf('12:memory:/x\n1:name=systemd:/system.slice/vllm@a.service/sub')).toEqual({
    unit: 'vllm@a.service',
    isOfUser: false,
  });
  expect(unitOf('0::/user.slice/user-1000.slice/user@1000.service/app.slice/vllm.service')).toEqual({
    unit: 'vllm.service',
    isOfUser: true,
  });
  expect(unitOf('0::/user.slice/user-1000.slice/session-3.scope')).toBeUndefined();
  expect(unitOf('0::/user.slice/user-1000.slice/user@1000.service/init.scope')).toBeUndefined();
  expect(unitOf('0::/a/--option.service')).toBeUndefined();
});
