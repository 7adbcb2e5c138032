/**
 * The part of a scenario that is about a launch: what is true of the machine, how long phases last, what goes wrong in them.
 * Schemas alone; `docs/lookalike.md` is their page. Sizes are GiB of one GPU, times the lookalike's own clock.
 */
import * as z from 'zod';
import { PHASES } from '../../../diagnosis/verdict.ts';

const GiB = z.number().nonnegative();
/** Of a start: `serving` is no phase of it. */
export const phaseName = z.enum(PHASES).exclude(['serving']);

const machine = z.strictObject({
  gpu: z.string().default('RTX PRO 6000'),
  /** A model of the table, or a folder with config.json, that stands for the one that is launched. */
  model: z.string().optional(),
  /** Left out: what the arithmetic estimates. */
  freeBeforeLoadGiB: GiB.optional(),
  weightsGiB: GiB.optional(),
  /** Graphs and workspaces of a launch with the default batch sizes; fewer sizes take their part of it. */
  graphsGiB: GiB.optional(),
  /** What the allocator keeps more or less after capture, by memory fraction: `{"0.9": 0.06}`. */
  fragmentsGiB: z.record(z.string().regex(/^0?\.\d+$/), z.number()).default({}),
  /** What one full prefill chunk takes at run time. */
  prefillNeedGiB: GiB.optional(),
  /** Of a vLLM profile. */
  activationsGiB: GiB.optional(),
  outsideTorchGiB: GiB.optional(),
  /** Free host memory; 1.5 TiB is common beside eight such cards. */
  hostMemoryGiB: GiB.default(1536),
  /** `kv_cache_quant_algo` of the checkpoint: `FP8` makes `auto` FP8, without a word in some versions. */
  kvCacheAlgorithm: z.string().optional(),
});

/** Keys of the whole scenario, laid into its schema. */
export const LAUNCH_KEYS = {
  machine: machine.default(machine.parse({})),
  phases: z.partialRecord(phaseName, z.strictObject({ seconds: z.number().nonnegative() })).default({}),
  /** Its ranks live on when it dies, and hold what they hold. */
  leavesRanks: z.boolean().default(false),
  ignoresSigterm: z.boolean().default(false),
  /** Its process group never comes up unless this variable is in its environment, and not 0. */
  hangsUnlessEnv: z.string().default(''),
  /** The KV cache is this type (FP8 where none is named) whatever the flags say, and no line of the log names it. */
  hidesKvType: z.union([z.boolean(), z.enum(['fp8_e4m3', 'fp8_e5m2', 'bf16'])]).default(false),
  /** GPU memory stays so long after a rank has died, in real milliseconds. */
  memoryStaysMs: z.number().nonnegative().default(0),
};
const launchKeys = z.strictObject(LAUNCH_KEYS);
export type LaunchScenario = z.infer<typeof launchKeys>;
