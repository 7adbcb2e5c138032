import { createServer } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { nodeHost } from '../../host/node-host.ts';
import { localMachine } from '../../machine/local/local-machine.ts';
import { findFreePort } from './find-free-port.ts';

/** Draws that lead to these ports, one after the other. */
const draws = (ports: readonly number[]) => {
  let at = 0;
  return () => ((ports[at++ % ports.length] ?? 0) - 30_000 + 0.5) / 2_768;
};

test('a port where somebody listens is passed over, and where all are taken nothing is started', async () => {
  const machine = localMachine(nodeHost());
  const taken = await findFreePort(machine, Math.random);
  const server = createServer();
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(taken, '127.0.0.1', resolve));
  const other = taken === 30_000 ? 30_001 : taken - 1;
  expect(await findFreePort(machine, draws([taken, other]))).toBe(other);
  await expect(findFreePort(machine, draws([taken]))).rejects.toMatchObject({ code: 'server.not-launched' });
});
