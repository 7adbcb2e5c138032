import { expect, test } from 'vitest';
import { ManualClock } from '../../../test/support/manual-clock.ts';
import { dialectOf } from '../../engine/dialects.ts';
import { nodeHost } from '../../host/node-host.ts';
import { pickPort } from '../../host/ports.ts';
import { localMachine } from '../../machine/local/local-machine.ts';
import { LaunchedEngine } from './launched-engine.ts';

test('a launch that is left holds nobody who left it', async () => {
  const clock = new ManualClock();
  const host = { ...nodeHost(), clock };
  const machine = localMachine(host);
  const port = await pickPort();
  const reach = await machine.reach(port);
  const launch = {
    ...{ n: 1, marker: 'none', flags: {}, env: {}, line: '', port, startedAt: 0, answered: 0 },
    ...{ logPath: '/no/such.log', statusPath: '/no/such.exit' },
  };
  const engine = new LaunchedEngine({
    ...{ name: 's', machine, reach, clock, launch, dialect: dialectOf('sglang') },
    control: host.openHttp({ baseUrl: reach.baseUrl, connections: 1 }),
    emit: () => undefined,
    asked: () => ({ inFlight: 0, answered: 0 }),
    onOver: async () => undefined,
  });
  await engine.leave();
  expect(clock.sleeping).toBe(0);
});
