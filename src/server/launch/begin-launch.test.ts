import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { nodeHost } from '../../host/node-host.ts';
import { localMachine } from '../../machine/local/local-machine.ts';
import { prepareLog } from './begin-launch.ts';

test('the log before moves aside once, though the connection drops with the answer and it is asked for again', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-log-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const machine = localMachine(nodeHost());
  const log = join(folder, 'logs', 's.log');
  const again = async (n: number) => {
    await prepareLog(machine, log, n);
    await prepareLog(machine, log, n);
  };
  await again(0);
  expect(readFileSync(log, 'utf8')).toBe('');
  writeFileSync(log, 'of launch 1');
  await again(1);
  expect([log, `${log}.1`].map((path) => readFileSync(path, 'utf8'))).toEqual(['', 'of launch 1']);
  await again(2); // launch 2 has said nothing
  expect([log, `${log}.2`, `${log}.1`].map((path) => readFileSync(path, 'utf8'))).toEqual(['', '', 'of launch 1']);
});
