/**
 * One server's life, decided purely.
 *
 *   starting ──healthy──▶ ready ──suspected──▶ suspect ──healthy──▶ ready
 *      │                    │                     │
 *      │                    └──────exited─────────┤ (a launched one)  ──▶ starting again, or failed
 *      └──exited / away too long──▶ failed        └──away too long──▶ failed
 *
 * `suspect` = a request was lost, so nothing is sent until its health says 200 again. `failed` is final for this worker.
 * A server that Aerie attached to is never stopped and never restarted; it is only waited for.
 */
import { formatDuration } from '../base/units.ts';

export type ServerState =
  | { readonly kind: 'starting'; readonly sinceMs: number; readonly deaths: number }
  | { readonly kind: 'ready'; readonly deaths: number }
  | { readonly kind: 'suspect'; readonly sinceMs: number; readonly deaths: number }
  | { readonly kind: 'failed'; readonly because: string }
  | { readonly kind: 'stopped' };

export type ServerObservation =
  | { readonly kind: 'healthy' }
  | { readonly kind: 'not-ready'; readonly seen: string }
  | { readonly kind: 'suspected' }
  | { readonly kind: 'exited'; readonly how: string }
  | { readonly kind: 'answered' }
  | { readonly kind: 'stopped' };

/** Deaths in a row, no answer between, after which a launched server is not started again: the same flags will not help a sixth time. */
export const MOST_DEATHS = 5;

export function nextServerState(
  state: ServerState,
  seen: ServerObservation,
  at: { readonly nowMs: number; readonly patienceMs: number; readonly mostDeaths: number },
): ServerState {
  if (seen.kind === 'stopped') return { kind: 'stopped' };
  if (state.kind === 'failed' || state.kind === 'stopped') return state;
  switch (seen.kind) {
    case 'healthy':
      return state.kind === 'ready' ? state : { kind: 'ready', deaths: state.deaths };
    case 'answered':
      return state.deaths === 0 ? state : { ...state, deaths: 0 };
    case 'suspected':
      return suspected(state, at.nowMs);
    case 'exited':
      return afterDeath(state.deaths + 1, seen.how, at);
    case 'not-ready':
      return state.kind === 'ready' ? suspected(state, at.nowMs) : stillAway(state, seen.seen, at);
  }
}

type Living = Extract<ServerState, { readonly deaths: number }>;

function suspected(state: Living, nowMs: number): ServerState {
  return state.kind === 'ready' ? { kind: 'suspect', sinceMs: nowMs, deaths: state.deaths } : state;
}

function afterDeath(deaths: number, how: string, { nowMs, mostDeaths }: { nowMs: number; mostDeaths: number }): ServerState {
  if (deaths <= mostDeaths) return { kind: 'starting', sinceMs: nowMs, deaths };
  return { kind: 'failed', because: `it ended ${deaths} times in a row without answering anything; the last: ${how}` };
}

function stillAway(
  state: Extract<ServerState, { readonly sinceMs: number }>,
  seen: string,
  at: { readonly nowMs: number; readonly patienceMs: number },
): ServerState {
  const awayMs = at.nowMs - state.sinceMs;
  if (awayMs <= at.patienceMs) return state;
  return { kind: 'failed', because: `it was away for ${formatDuration(awayMs)}; last seen: ${seen}` };
}

/** Before a process that has died is started again: at once the first time, then 1, 2, 4 … seconds while none has answered. */
export function relaunchPauseMs(state: ServerState): number {
  return state.kind === 'starting' && state.deaths > 1 ? 1000 * 2 ** (state.deaths - 2) : 0;
}
