/**
 * Does a launch keep the rules of the run file? Pure; asked before a launch about its flags and after it about what the
 * server really does.
 * Promises: a rule is matched on what a thing is (bits per element), never on how it is spelled; what nobody can tell is
 * not kept, and `known: false` says that it is not proven broken either.
 */
import { countBits, isKnown } from '../base/element-type.ts';
import type { PolicyRule, ServerSpec } from './run.ts';

export interface PolicyCheck {
  readonly rule: PolicyRule;
  /** False also where it is not known. */
  readonly kept: boolean;
  readonly known: boolean;
  readonly because: string;
}

/** The lowest number of bits that `below-16-bit` allows. */
const FEWEST_BITS = 16;

export function checkPolicy(rules: readonly PolicyRule[], launch: { readonly kvCacheDtype: string }): PolicyCheck[] {
  return rules.map((rule) => ({ rule, ...judgeKvCache(launch.kvCacheDtype) }));
}

function judgeKvCache(dtype: string): Omit<PolicyCheck, 'rule'> {
  if (!isKnown(dtype)) return { kept: false, known: false, because: 'nothing says which type the KV cache has' };
  const bits = countBits(dtype);
  if (bits === undefined)
    return { kept: false, known: false, because: `the KV cache is ${dtype}, which does not tell its bits per element` };
  const kept = bits >= FEWEST_BITS;
  return {
    kept,
    known: true,
    because: `the KV cache is ${dtype}, ${bits} bits per element; the rule asks for ${FEWEST_BITS} or more`,
  };
}

/** The KV type that the flags of a server ask for, '' where the server is already there and only it can tell. */
export function findPlannedKvCacheDtype(server: ServerSpec): string {
  if (server.attach !== undefined) return '';
  const written = server.flags['kv-type'];
  return written === undefined ? 'f16' : String(written); // f16 is what the embedded engine takes when not told
}
