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
  at: { readonly nowMs: number; readonly patienceMs: number },
): ServerState {
  if (state.kind === 'failed' || state.kind === 'stopped') return seen.kind === 'stopped' ? { kind: 'stopped' } : state;
  switch (seen.kind) {
    case 'stopped':
      return { kind: 'stopped' };
    case 'healthy':
      return state.kind === 'ready' ? state : { kind: 'ready', deaths: state.deaths };
    case 'answered':
      return state.deaths === 0 ? state : { ...state, deaths: 0 };
    case 'suspected':
      return state.kind === 'ready' ? { kind: 'suspect', sinceMs: at.nowMs, deaths: state.deaths } : state;
    case 'exited': {
      const deaths = state.deaths + 1;
      if (deaths > MOST_DEATHS)
        return { kind: 'failed', because: `it ended ${deaths} times in a row without answering anything; the last: ${seen.how}` };
      return { kind: 'starting', sinceMs: at.nowMs, deaths };
    }
    case 'not-ready':
      if (state.kind === 'ready') return { kind: 'suspect', sinceMs: at.nowMs, deaths: state.deaths };
      if (at.nowMs - state.sinceMs <= at.patienceMs) return state;
      return {
        kind: 'failed',
        because: `it was away for ${formatDuration(at.nowMs - state.sinceMs)}; last seen: ${seen.seen}`,
      };
  }
}
