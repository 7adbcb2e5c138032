/** What the watch of an attached server asks, and what follows from a verdict. Pure. It asks little: the server is somebody else's. */
import type { LiveVerdict } from '../../diagnosis/live/look.ts';

/** What moved within a minute is at work. */
const RECENT_MS = 60_000;
/** Counters come from the front end in milliseconds; later than this its loop is busy or stuck. */
const COUNTERS_LATE_MS = 10_000;

export interface AskedSoFar {
  /** It has been seen to be well since this server answers. */
  readonly wasWell: boolean;
  readonly verdict: Pick<LiveVerdict, 'state' | 'stillForMs'> | undefined;
  /** The last question for counters met nobody, or is not answered for so long. */
  readonly isRefused: boolean;
  readonly countersWaitMs: number;
}

/**
 * SGLang answers a health check with a token that it generates, so a server that is well is not asked: its counters and its answers
 * show that it works, and one that nobody asks for work need not show it.
 */
export function needsHealth({ wasWell, verdict, isRefused, countersWaitMs }: AskedSoFar): boolean {
  if (!wasWell || verdict === undefined || isRefused || countersWaitMs > COUNTERS_LATE_MS) return true;
  const isWell = verdict.state === 'ready' || verdict.state === 'serving';
  return !isWell || verdict.stillForMs > RECENT_MS;
}

/**
 * `look-anew`: what answers may be another server, or nothing: nothing is sent until it was asked again. `cut`: what is under way
 * will never be answered either.
 */
export type Step = 'none' | 'look-anew' | 'cut';

/** `isGone`: its process was there and is not any more. */
export function stepFor({ state, confidence }: Pick<LiveVerdict, 'state' | 'confidence'>, isGone: boolean): Step {
  switch (state) {
    case 'hung':
    case 'crashed':
      return confidence === 'high' || isGone ? 'cut' : 'none';
    case 'stopped':
      return 'cut';
    case 'absent':
      return 'look-anew';
    default:
      return 'none';
  }
}

/** Why nothing is sent though its health is well; '' = nothing speaks against it. */
export function whyHeldBack(verdict: Pick<LiveVerdict, 'state' | 'confidence' | 'title' | 'cause'> | undefined): string {
  if (verdict?.state !== 'hung' || verdict.confidence !== 'high') return '';
  return `it hangs: ${verdict.title} (${verdict.cause})`;
}
