/** What is read of containers, and where their servers are. The texts are shortened from docker 28's. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { addressOf, type ContainerFacts, parseInspection, publishersOf } from './container-facts.ts';

const ID = 'c94d808d03fafcd723b0057dfdceffb55a9f86e7e2ee2a8a0e50988a56844e64';
const INSPECTED = {
  Id: ID,
  Path: 'python3',
  Args: ['-m', 'sglang.launch_server', '--port', '30000'],
  State: { Status: 'running', Pid: 3625, ExitCode: 0, StartedAt: '2026-11-30T22:26:56.822000001Z' },
  LogPath: `/var/lib/docker/containers/${ID}/${ID}-json.log`,
  Name: '/sglang',
  HostConfig: { LogConfig: { Type: 'json-file', Config: {} }, NetworkMode: 'bridge' },
  Config: { Image: 'lmsysorg/sglang:v0.5.8' },
  NetworkSettings: {
    Ports: { '30000/tcp': [{ HostIp: '0.0.0.0', HostPort: '31000' }], '9000/udp': null },
    IPAddress: '',
    Networks: { bridge: { IPAddress: '172.17.0.2' } },
  },
};
const facts = (over: Partial<ContainerFacts> = {}): ContainerFacts => {
  const parsed = parseInspection(JSON.stringify([INSPECTED]));
  if (parsed === undefined) throw new Error('not parsed');
  return { ...parsed, ...over };
};

test('the account of docker inspect is read', () => {
  expect(facts()).toMatchObject({
    ...{ id: ID, name: 'sglang', state: 'running', pid: 3625, network: 'bridge', address: '172.17.0.2' },
    words: ['python3', '-m', 'sglang.launch_server', '--port', '30000'],
    ports: [{ containerPort: 30_000, hostAddress: '0.0.0.0', hostPort: 31_000 }],
    logDriver: 'json-file',
  });
});

test('a published port comes before the host’s network, and that before the container’s own address', () => {
  expect(addressOf(facts(), 30_000, 30_000)).toMatchObject({ port: 31_000, address: '127.0.0.1', how: 'published' });
  expect(addressOf(facts({ ports: [] }), 30_000, 30_000)).toMatchObject({ port: 30_000, address: '172.17.0.2', how: 'own' });
  expect(addressOf(facts({ ports: [], network: 'host', address: '' }), 0, 8_000)).toMatchObject({ port: 8_000, how: 'host' });
  expect(addressOf(facts({ ports: [], address: '' }), 0, 8_000)).toMatchObject({ kind: 'unknown' });
  expect(addressOf(facts({ state: 'exited' }), 0, 8_000)).toMatchObject({ because: 'container sglang is exited' });
  const elsewhere = [{ containerPort: 30_000, hostAddress: '10.0.0.7', hostPort: 80 }];
  expect(addressOf(facts({ ports: elsewhere }), 30_000, 30_000)).toMatchObject({ address: '10.0.0.7', port: 80 });
});

test('the only published port is the server’s where its command line says none', () => {
  const ports = [{ containerPort: 9_999, hostAddress: '', hostPort: 80 }];
  expect(addressOf(facts({ ports }), 0, 8_000)).toMatchObject({ port: 80, how: 'published' });
  expect(addressOf(facts({ ports }), 8_000, 8_000)).toMatchObject({ port: 8_000, how: 'own' });
});

test('who publishes a port of the host, ranges too', () => {
  const other = ID.replace('c9', '01');
  const listed = `${ID} 0.0.0.0:31000->30000/tcp, [::]:31000->30000/tcp\n${other} 127.0.0.1:9000-9002->9000-9002/tcp\nnoise\n`;
  expect(publishersOf(listed, 31_000)).toEqual([ID]);
  expect(publishersOf(listed, 9_001)).toEqual([other]);
  expect(publishersOf(listed, 30_000)).toEqual([]);
});

test('whatever another program prints, nothing but facts of the right kind come of it', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.json(),
        fc.json().map((inner) => `[{"Id":"${ID}","State":${inner}}]`),
      ),
      (text) => {
        const parsed = parseInspection(text);
        if (parsed === undefined) return;
        expect(Number.isSafeInteger(parsed.pid)).toBe(true);
        for (const { hostPort } of parsed.ports) expect(hostPort).toBeGreaterThan(0);
        expect(parsed.address).toMatch(/^[0-9a-f.:]*$/i);
      },
    ),
  );
});
