/** One figure of an observed server (how many ran while others waited) → the mean answer length that explains it in the twin. */
import type { Random } from '../host/host.ts';
import { type DrawnLoad, drawRequests } from './lengths.ts';
import { playLoad, type TwinResult } from './play-load.ts';
import type { TwinServer } from './server.ts';

export interface FitLengths {
  readonly server: TwinServer;
  readonly inFlight: number;
  /** The observed number; the queue was not empty, or it says nothing about lengths. */
  readonly running: number;
  /** All but the mean of the answers. */
  readonly load: Omit<DrawnLoad, 'output'>;
  readonly sigma: number;
  /** A fresh stream of the same numbers each time, so that only the mean differs between tries. */
  readonly randomOf: () => Random;
}

export interface FittedLengths {
  readonly load: DrawnLoad;
  readonly played: TwinResult;
}

/** Halving the interval 10 times leaves a thousandth of it: far below what one figure can tell. */
const HALVINGS = 10;

export function fitMeanOutput(fit: FitLengths): FittedLengths {
  let [low, high] = [Math.log(16), Math.log(fit.load.maxNewTokens * 4)];
  let best = tryMean(fit, Math.exp((low + high) / 2));
  for (let nth = 0; nth < HALVINGS; nth++) {
    const running = (best.played.steady ?? best.played.whole).running;
    const middle = (low + high) / 2;
    // Longer answers hold more of the pool each, so fewer run.
    if (running > fit.running) low = middle;
    else high = middle;
    best = tryMean(fit, Math.exp((low + high) / 2));
  }
  return best;
}

function tryMean({ server, inFlight, load, sigma, randomOf }: FitLengths, mean: number): FittedLengths {
  const drawn: DrawnLoad = { ...load, output: { kind: 'lognormal', mean, sigma, most: load.maxNewTokens } };
  const requests = drawRequests(drawn, randomOf());
  return { load: drawn, played: playLoad(server, { requests, arrivals: { kind: 'closed', inFlight } }) };
}
