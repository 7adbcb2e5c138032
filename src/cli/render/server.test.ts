import { expect, it } from 'vitest';
import type { VerifiedServer } from '../../app/server/verify.ts';
import { renderServerStart, renderServerStop, renderServerVerify } from './server.ts';

const NONE: VerifiedServer = {
  ...{ name: 's', launch: 0, launches: 0, pid: 0, baseUrl: '', at: '', log: '', isWell: false },
  ...{ verdict: undefined, verified: undefined, change: undefined, unverified: '' },
};

it('a server that does not run is told with what to type: one that never did, and one that has ended', () => {
  const say = (launches: number) =>
    renderServerVerify({ run: 'r', servers: [{ ...NONE, launches }], isWell: false }, 'my run.yaml');
  expect(say(0)).toBe('s  was not launched yet:  aerie server start my run.yaml');
  expect(say(2)).toBe('s  does not run; launch 2 has ended:  aerie server start my run.yaml');
});

it('GPU memory is said to be free only where cards were looked at', () => {
  const stopped = { name: 's', launches: 1, pid: 7, says: [], isGone: true, isMemoryFree: true };
  const say = (gpus: number) => renderServerStop({ run: 'r', servers: [{ ...stopped, gpus }], isClean: true });
  expect(say(8)).toBe('s  pid 7 has ended, GPU memory is free');
  expect(say(0)).toBe('s  pid 7 has ended, GPU memory is not known: no card was seen here');
});

it('a server elsewhere is told by its port there: the way from here ends with the command', () => {
  const figures = { poolTokens: 10, kvCacheDtype: 'bf16', contextTokens: 8, maxRunningRequests: 4 };
  const server = { ...figures, name: 's', pid: 7, log: '/l', baseUrl: 'http://127.0.0.1:40125', at: 'port 31257 of gpu-box' };
  const text = renderServerStart({ run: 'r', servers: [server] }, 'run.yaml');
  expect(text).toMatch(/^s {2}ready at port 31257 of gpu-box, pid 7\n/);
  expect(text).toMatch(/It goes on until: {2}aerie server stop run\.yaml$/);
});
