/** One server's life: the table of what moves it, and that every sequence of observations ends in a state that may be. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { MOST_DEATHS, nextServerState, relaunchPauseMs, type ServerObservation, type ServerState } from './server-state.ts';

const AT = { nowMs: 1000, patienceMs: 500, mostDeaths: MOST_DEATHS };
const starting: ServerState = { kind: 'starting', sinceMs: 900, deaths: 1 };
const ready: ServerState = { kind: 'ready', deaths: 1 };
const suspect: ServerState = { kind: 'suspect', sinceMs: 900, deaths: 1 };
const failed: ServerState = { kind: 'failed', because: 'x' };
const stopped: ServerState = { kind: 'stopped' };
const away: ServerObservation = { kind: 'not-ready', seen: 'nothing listens there' };

test.each<[ServerState, ServerObservation, ServerState]>([
  [starting, { kind: 'healthy' }, ready],
  [starting, away, starting],
  [starting, { kind: 'suspected' }, starting],
  [starting, { kind: 'exited', how: 'signal SIGKILL' }, { kind: 'starting', sinceMs: 1000, deaths: 2 }],
  [ready, { kind: 'healthy' }, ready],
  [ready, { kind: 'answered' }, { kind: 'ready', deaths: 0 }],
  [ready, { kind: 'suspected' }, { kind: 'suspect', sinceMs: 1000, deaths: 1 }],
  [ready, away, { kind: 'suspect', sinceMs: 1000, deaths: 1 }],
  [ready, { kind: 'exited', how: 'exit code 1' }, { kind: 'starting', sinceMs: 1000, deaths: 2 }],
  [suspect, { kind: 'healthy' }, ready],
  [suspect, { kind: 'suspected' }, suspect],
  [suspect, { kind: 'exited', how: 'exit code 1' }, { kind: 'starting', sinceMs: 1000, deaths: 2 }],
  [suspect, { kind: 'stopped' }, stopped],
  [failed, { kind: 'healthy' }, failed],
  [failed, { kind: 'stopped' }, stopped],
  [stopped, { kind: 'exited', how: 'signal SIGTERM' }, stopped],
])('%o, %o', (before, seen, after) => {
  expect(nextServerState(before, seen, AT)).toEqual(after);
});

test('away longer than the patience is the end, and the reason says how long and what was seen', () => {
  for (const state of [starting, suspect]) {
    const end = nextServerState(state, away, { nowMs: 125_900, patienceMs: 60_000, mostDeaths: MOST_DEATHS });
    expect(end).toEqual({ kind: 'failed', because: 'it was away for 2 min 5 s; last seen: nothing listens there' });
  }
});

test('six deaths in a row are the end, and an answer between begins the count anew', () => {
  const die = (state: ServerState) => nextServerState(state, { kind: 'exited', how: 'signal SIGKILL' }, AT);
  const come = (state: ServerState) => nextServerState(state, { kind: 'healthy' }, AT);
  let state: ServerState = { kind: 'ready', deaths: 0 };
  for (let death = 0; death < MOST_DEATHS; death++) state = come(die(state));
  expect(die(state)).toMatchObject({ kind: 'failed', because: expect.stringContaining('6 times in a row') });
  expect(die(nextServerState(state, { kind: 'answered' }, AT))).toMatchObject({ kind: 'starting', deaths: 1 });
});

test('it is started again at once, then after longer and longer', () => {
  expect([0, 1, 2, 3, 5].map((deaths) => relaunchPauseMs({ kind: 'starting', sinceMs: 0, deaths }))).toEqual([
    0, 0, 1000, 2000, 8000,
  ]);
  expect(relaunchPauseMs(failed)).toBe(0);
});

test('whatever is seen: the ends are final, deaths stay within their limit, and no time lies in the future', () => {
  const seen = fc.oneof(
    fc.constantFrom<ServerObservation>({ kind: 'healthy' }, { kind: 'suspected' }, { kind: 'answered' }, away),
    fc.constant<ServerObservation>({ kind: 'exited', how: 'exit code 1' }),
    fc.constant<ServerObservation>({ kind: 'stopped' }),
  );
  fc.assert(
    fc.property(fc.array(fc.tuple(seen, fc.nat(400)), { maxLength: 80 }), (story) => {
      let nowMs = 0;
      let state: ServerState = { kind: 'starting', sinceMs: 0, deaths: 0 };
      for (const [what, passedMs] of story) {
        nowMs += passedMs;
        const after = nextServerState(state, what, { nowMs, patienceMs: 500, mostDeaths: MOST_DEATHS });
        if (state.kind === 'stopped' || (state.kind === 'failed' && what.kind !== 'stopped')) expect(after).toEqual(state);
        if ('deaths' in after) expect(after.deaths).toBeLessThanOrEqual(MOST_DEATHS);
        if ('sinceMs' in after) expect(after.sinceMs).toBeLessThanOrEqual(nowMs);
        if (after.kind === 'ready' && state.kind !== 'ready') expect(what.kind).toBe('healthy');
        state = after;
      }
    }),
  );
});
