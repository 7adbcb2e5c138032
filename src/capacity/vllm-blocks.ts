/**
 * vLLM's KV blocks. Layers of one kind form groups of one size, and all groups draw blocks of one size from one pool; layers with a
 * state hold one block for each request, sliding layers as many as their window needs. Pure.
 * What the engine prints as "GPU KV cache size" is, for hybrid models, the tokens of requests of the greatest length: concurrency × length.
 */
import { isAtLeast } from '../engine/version.ts';
import { countTokenBytes } from './bytes-per-token.ts';
import type { EngineLaunch } from './engine-launch.ts';
import type { ModelShape } from './model-shape.ts';

export interface BlockPlan {
  /** Tokens that the pool holds, as the engine prints them. */
  tokensOf(poolBytes: number): number;
  /** Pool bytes that one request of the greatest length needs. */
  readonly bytesOfLongest: number;
}

export function planBlocks(shape: ModelShape, launch: EngineLaunch): BlockPlan {
  const bytes = countTokenBytes(shape, launch).bytes;
  const hasState = shape.caches.some(({ kind }) => kind === 'state');
  const hasWindow = shape.caches.some((group) => group.kind === 'heads' && group.window > 0);
  const hasFull = shape.caches.some((group) => group.kind === 'latent' || (group.kind === 'heads' && group.window === 0));
  const isHybrid = hasFull && (hasState || (hasWindow && (isAtLeast(launch.version, [0, 9, 0]) ?? true)));
  return isHybrid ? planHybrid(shape, launch) : planUniform(bytes, launch);
}

function planUniform(bytes: number, launch: EngineLaunch): BlockPlan {
  const block = bytes * launch.pageTokens;
  return {
    tokensOf: (poolBytes) => (block > 0 ? Math.floor(poolBytes / block) * launch.pageTokens * launch.dcp : 0),
    bytesOfLongest: Math.ceil(launch.contextTokens / launch.dcp / launch.pageTokens) * block,
  };
}

interface Kind {
  readonly layers: number;
  /** Blocks that one request of the greatest length holds, for blocks of `tokens`. */
  blocks(tokens: number): number;
}

function planHybrid(shape: ModelShape, launch: EngineLaunch): BlockPlan {
  const context = Math.max(1, launch.contextTokens);
  const perLayer = { token: 0, state: 0 };
  const kinds = shape.caches.map((group): Kind => {
    const alone = countTokenBytes({ ...shape, caches: [group] }, { ...launch, slidingRatio: 1 });
    if (group.kind === 'state') {
      perLayer.state = Math.max(perLayer.state, alone.stateBytesPerRequest / Math.max(1, Math.ceil(group.layers / launch.pp)));
      // One for the running state, one that prefix caching keeps, and one for each token that is drafted.
      const held = 1 + (launch.hasRadixCache ? 1 : 0) + (launch.speculative?.tokens ?? 0);
      return { layers: group.layers, blocks: () => held };
    }
    perLayer.token = Math.max(perLayer.token, alone.bytes / Math.max(1, alone.layers));
    const window = group.kind === 'heads' ? group.window : 0;
    // A window needs what it spans and the tokens of one step.
    const held = window > 0 ? Math.min(context, window - 1 + launch.prefillChunkTokens) : context;
    const draft = window === 0 && launch.speculative !== undefined ? launch.speculative.draftLayers : 0;
    return { layers: group.layers + draft, blocks: (tokens) => Math.ceil(held / tokens) + (window > 0 ? 1 : 0) };
  });
  // A block of attention is made as large as a state, so that both can lie in it.
  const tokens = Math.max(launch.pageTokens, Math.ceil(perLayer.state / perLayer.token / 16) * 16);
  const size = Math.min(...kinds.map(({ layers }) => layers));
  const block = size * tokens * perLayer.token;
  const perRequest = kinds.reduce((sum, kind) => sum + Math.ceil(kind.layers / size) * kind.blocks(tokens), 0);
  // Up to some version between 0.12 and 0.21 the line said blocks / groups × block size, which is no capacity.
  const groups = kinds.reduce((sum, kind) => sum + Math.ceil(kind.layers / size), 0);
  const isByConcurrency = isAtLeast(launch.version, [0, 17, 0]) ?? true;
  return {
    tokensOf: (poolBytes) => {
      const blocks = Math.floor(poolBytes / block);
      return isByConcurrency ? Math.floor((blocks / perRequest) * context) : Math.floor(blocks / groups) * tokens;
    },
    bytesOfLongest: perRequest * block,
  };
}
