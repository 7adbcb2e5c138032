/** What is asked of the server: requests with their true lengths, and how the client sends them. */

/** A run of tokens that another request may share: equal keys after equal predecessors are equal tokens. */
export interface Segment {
  readonly key: string;
  readonly tokens: number;
}

export interface TwinRequest {
  readonly id: string;
  readonly promptTokens: number;
  /** What it will really generate, stop token included. The scheduler never looks at it. */
  readonly outputTokens: number;
  /** The client's `max_tokens`: what the scheduler reserves for. */
  readonly maxNewTokens: number;
  /** How the prompt begins; the rest of it is the request's own. */
  readonly shared: readonly Segment[];
}

/** How requests reach the server. The client's own limit holds in both: what exceeds it waits in the client. */
export type Arrivals =
  | { readonly kind: 'closed'; readonly inFlight: number }
  | { readonly kind: 'open'; readonly atSeconds: readonly number[]; readonly inFlight: number };

export interface TwinLoad {
  readonly requests: readonly TwinRequest[];
  readonly arrivals: Arrivals;
}

/** The segment name of what a request generates, for a later turn that continues it. */
export const ownKey = (id: string): string => `#${id}`;
