/** This machine keeps the contract of machines. */
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { nodeHost } from '../../src/host/node-host.ts';
import { localMachine } from '../../src/machine/local/local-machine.ts';
import { describeMachine } from './machine.ts';

describeMachine('this machine', async () => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'aerie-machine-')));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return { machine: localMachine(nodeHost()), folder };
});
