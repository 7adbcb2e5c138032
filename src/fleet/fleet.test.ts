/** Which server takes the next request: ready before away, well before sick, then the one with the fewest in flight. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Endpoint } from '../server/endpoint.ts';
import { type Candidate, chooseServer } from './fleet.ts';
import { Standing } from './standing.ts';

const endpoint = (server: string) => ({ server }) as Endpoint;
const candidate = (server: string, inFlight: number, change: Partial<Candidate> = {}): Candidate => ({
  ...{ endpoint: endpoint(server), inFlight, isSick: false },
  ...change,
});

test('the one with the fewest in flight, the first of equals', () => {
  expect(chooseServer([candidate('a', 3), candidate('b', 1), candidate('c', 1)])?.server).toBe('b');
});

test('a sick server is left alone while another is well, and used where none is', () => {
  const sick = candidate('a', 0, { isSick: true });
  expect(chooseServer([sick, candidate('b', 90)])?.server).toBe('b');
  expect(chooseServer([sick, candidate('b', 90, { endpoint: undefined })])?.server).toBe('a');
});

test('none where none is ready', () => {
  expect(chooseServer([])).toBeUndefined();
  expect(chooseServer([candidate('a', 0, { endpoint: undefined })])).toBeUndefined();
});

test('whoever is chosen is ready, and no ready and well one has fewer in flight', () => {
  const anyCandidate = fc.record({ isReady: fc.boolean(), inFlight: fc.nat(9), isSick: fc.boolean() });
  fc.assert(
    fc.property(fc.array(anyCandidate, { maxLength: 6 }), (given) => {
      const candidates = given.map(({ isReady, inFlight, isSick }, at) => ({
        ...{ endpoint: isReady ? endpoint(String(at)) : undefined, inFlight, isSick },
      }));
      const chosen = candidates.find((one) => one.endpoint !== undefined && one.endpoint === chooseServer(candidates));
      const ready = candidates.filter((one) => one.endpoint !== undefined);
      expect(chosen === undefined).toBe(ready.length === 0);
      const well = ready.filter(({ isSick }) => !isSick);
      const among = well.length > 0 ? well : ready;
      if (chosen !== undefined) expect(chosen.inFlight).toBe(Math.min(...among.map(({ inFlight }) => inFlight)));
    }),
  );
});

test('five different prompts without an answer make a server sick, for half a minute or until it answers', () => {
  const standing = new Standing();
  const fail = (prompt: string, nowMs: number) => {
    standing.inFlight += 1;
    standing.ended(prompt, 'failed', nowMs);
  };
  for (let again = 0; again < 9; again++) fail('one', 0);
  expect(standing.isSick(0)).toBe(false);
  for (const prompt of ['two', 'three', 'four', 'five']) fail(prompt, 1000);
  expect([standing.isSick(1000), standing.isSick(30_999), standing.isSick(31_000)]).toEqual([true, true, false]);
  standing.inFlight += 1;
  standing.ended('six', 'completed', 1000);
  expect([standing.isSick(1000), standing.answers, standing.inFlight]).toEqual([false, 1, 0]);
});
