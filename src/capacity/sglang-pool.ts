/**
 * SGLang's pool from the free memory before and after the weights: rest = after − before × (1 − fraction), less a reserve for
 * images, less the states of hybrid models; tokens = rest / bytes per token, down to a whole page. Pure; unchanged in substance from 0.4.6 to 0.5.18.
 */
import { isAtLeast } from '../engine/version.ts';
import { countTokenBytes, type TokenBytes } from './bytes-per-token.ts';
import type { EngineLaunch } from './engine-launch.ts';
import type { Facts } from './facts.ts';
import type { ModelShape } from './model-shape.ts';
import type { Interval } from './prediction.ts';
import type { Bound } from './solve-memory.ts';

const GIB = 2 ** 30;
/** From 0.5.18 models with a vision tower keep 100 MB for images (`SGLANG_VLM_CACHE_SIZE_MB`). */
const IMAGE_RESERVE_GIB = 100 / 1024;

export interface Pool {
  readonly tokens: number;
  readonly poolGiB: number;
  readonly stateGiB: number;
  /** States that fit; 0 where the model has none. */
  readonly stateSlots: number;
  readonly isCapped: boolean;
}

export function imageReserveGiB(shape: ModelShape, launch: EngineLaunch): number {
  return shape.vision !== undefined && (isAtLeast(launch.version, [0, 5, 18]) ?? true) ? IMAGE_RESERVE_GIB : 0;
}

/** `restGiB`: what the static budget leaves beside the weights. */
export function sizePool(restGiB: number, shape: ModelShape, launch: EngineLaunch): Pool {
  const bytes = countTokenBytes(shape, launch);
  const state = sizeStates(restGiB, bytes, launch);
  const left = Math.max(0, restGiB - state.GiB);
  const profiled = bytes.bytes > 0 ? Math.floor((left * GIB) / bytes.bytes) : 0;
  const cap = launch.maxTotalTokensAsked;
  const isCapped = cap > 0 && cap < profiled;
  const wanted = isCapped ? cap : profiled;
  const tokens = Math.max(0, Math.floor(wanted / launch.pageTokens) * launch.pageTokens);
  return { tokens, poolGiB: (tokens * bytes.bytes) / GIB, stateGiB: state.GiB, stateSlots: state.slots, isCapped };
}

function sizeStates(restGiB: number, bytes: TokenBytes, launch: EngineLaunch): { slots: number; GiB: number } {
  const one = bytes.stateBytesPerRequest;
  if (one === 0 || restGiB <= 0) return { slots: 0, GiB: 0 };
  const groups = launch.isDpAttention ? launch.dp : 1;
  const asked = launch.stateSlotsAsked > 0 ? launch.stateSlotsAsked : launch.hasRadixCache ? 0 : launch.maxRunningAsked;
  const byRatio = Math.floor((restGiB * (launch.stateRatio / (1 + launch.stateRatio)) * GIB) / one);
  const slots = asked > 0 ? Math.floor(asked / groups) : byRatio;
  return { slots, GiB: (slots * one) / GIB };
}

/** What a printed pool says about after − before × (1 − fraction). Nothing, where a cap below the profile decided it. */
export function boundByPool(facts: Facts, shape: ModelShape, launch: EngineLaunch): Bound | undefined {
  const bytes = countTokenBytes(shape, launch);
  const pool = printedPool(facts, bytes, launch);
  if (pool === undefined || bytes.bytes === 0) return undefined;
  if (launch.maxTotalTokensAsked > 0 && Math.abs((facts.poolTokens ?? 0) - launch.maxTotalTokensAsked) < launch.pageTokens)
    return undefined;
  const one = bytes.stateBytesPerRequest / GIB;
  const share = one === 0 ? 0 : launch.stateRatio / (1 + launch.stateRatio);
  const reserve = imageReserveGiB(shape, launch);
  // The states take their share of the rest, rounded down to whole ones.
  const rest = { low: (pool.low - one) / (1 - share), high: pool.high / (1 - share) };
  return { x: -(1 - launch.memoryFraction), y: 1, range: { low: rest.low + reserve, high: rest.high + reserve } };
}

function printedPool(facts: Facts, bytes: TokenBytes, launch: EngineLaunch): Interval | undefined {
  const page = launch.pageTokens;
  const gib = (tokens: number) => (tokens * bytes.bytes) / GIB;
  if (facts.poolTokens !== undefined) return { low: gib(facts.poolTokens), high: gib(facts.poolTokens + page) };
  if (facts.poolGiB === undefined) return undefined;
  // K and V are printed apart, each rounded; the tensors hold one page more than the pool.
  const { value, halfWidth } = facts.poolGiB;
  return { low: value - 2 * halfWidth - gib(page), high: value + 2 * halfWidth };
}
