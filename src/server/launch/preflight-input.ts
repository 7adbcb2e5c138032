/** What is asked before a launch, and what each question is answered with. Pure types; `preflight.ts` asks them all. */
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import type { Plan } from '../../capacity/plan-launch.ts';
import type { LaunchFlags } from '../../engine/launching.ts';
import type { GpuLook, HoldersLook, PortOwner, Resources } from '../../machine/machine.ts';
import type { PolicyCheck } from '../../spec/policy.ts';

/** A port that the launch will listen on, and who listens there now. */
export interface PortLook {
  readonly port: number;
  /** `HTTP`, `rendezvous`: for sentences. */
  readonly what: string;
  /** undefined: it is free. */
  readonly owner: PortOwner | undefined;
}

export type PreflightVerdict = 'ok' | 'warning' | 'refused' | 'unknown';

export interface PreflightCheck {
  readonly name:
    | 'client'
    | 'port'
    | 'gpus'
    | 'gpu memory'
    | 'host memory'
    | 'shared memory'
    | 'model'
    | 'disk'
    | 'log'
    | 'flags'
    | 'plan'
    | 'policy';
  readonly verdict: PreflightVerdict;
  /** A sentence with the numbers, without a full stop. */
  readonly says: string;
  /** What to change or type; '' where nothing is to be done. */
  readonly remedy: string;
}

export interface PreflightInput {
  readonly engine: PlannedEngine;
  /** As sent: `effectiveFlags` of the dialect. */
  readonly flags: LaunchFlags;
  /** undefined: the model's config, the GPU or the version is not known. */
  readonly plan: Plan | undefined;
  /** `policyBeforeLaunch`. */
  readonly policy: readonly PolicyCheck[];
  readonly resources: Resources;
  readonly gpus: GpuLook;
  readonly holders: HoldersLook | undefined;
  /** MiB of each GPU with nobody on it, by its index; undefined where it was never seen so. */
  readonly baselineMiB: Readonly<Record<number, number>> | undefined;
  /** CUDA_VISIBLE_DEVICES of the launch, where it names indices. */
  readonly visibleGpus: readonly number[] | undefined;
  /** One for each of `portsOf`. */
  readonly ports: readonly PortLook[];
  /** What the launcher prints for its help; undefined where it was not asked. */
  readonly help: string | undefined;
  /** The model where it is a path of the machine; undefined = a name of the hub, or a path that only a container sees. */
  readonly modelPath: { readonly path: string; readonly isThere: boolean | undefined } | undefined;
  /** Where the log of the launch is written. */
  readonly logDisk: { readonly folder: string; readonly freeBytes: number | undefined };
  /** Bytes still to be fetched; 0 = the model is here, undefined = not known. */
  readonly downloadBytes: number | undefined;
  /** Free where the download goes. */
  readonly diskFreeBytes: number | undefined;
}
