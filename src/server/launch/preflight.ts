/**
 * Can this launch work here, asked before anything is started. Pure: what the machine shows goes in, one line a question comes out.
 * Promises: every question is answered, with the numbers; what could not be looked at is `unknown` and never `ok`; only what is certain to
 * fail, or what policy forbids, is refused; a person who knows better starts with a warning.
 */
import { checkFlags } from './preflight-flags.ts';
import { checkGpuMemory, checkGpus } from './preflight-gpus.ts';
import { checkDisk, checkHostMemory, checkSharedMemory } from './preflight-host.ts';
import type { PreflightCheck, PreflightInput } from './preflight-input.ts';
import { checkLogDisk, checkModel } from './preflight-model.ts';
import { checkPlan, checkPolicies } from './preflight-plan.ts';
import { checkPorts } from './preflight-ports.ts';

export interface Preflight {
  readonly checks: readonly PreflightCheck[];
  readonly isRefused: boolean;
}

export function judgePreflight(input: PreflightInput): Preflight {
  const checks = [
    ...checkPorts(input),
    checkGpus(input),
    checkGpuMemory(input),
    checkHostMemory(input),
    checkSharedMemory(input),
    ...checkModel(input),
    checkDisk(input),
    checkLogDisk(input),
    checkFlags(input),
    checkPlan(input),
    ...checkPolicies(input),
  ];
  return { checks, isRefused: checks.some(({ verdict }) => verdict === 'refused') };
}
