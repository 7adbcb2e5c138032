import { type PlanInput, runPlan } from '../../app/plan.ts';
import type { CliContext } from '../cli-context.ts';
import type { PlanFlags } from '../flags.ts';
import { perform } from '../perform.ts';
import { planData, renderPlan } from '../render/plan.ts';
import { openTerminal } from '../terminal.ts';

export async function plan(this: CliContext, flags: PlanFlags, ...rest: string[]): Promise<void> {
  const { json, gpuMemory, sweep, ...given } = flags;
  // What does not begin with a dash and stands first is the run; the rest is the engine's, in its own spelling.
  const [first] = rest;
  const isRun = first !== undefined && !first.startsWith('-');
  const input: PlanInput = {
    ...given,
    ...(isRun ? { target: first } : {}),
    ...(gpuMemory === undefined ? {} : { gpuMemoryMiB: gpuMemory }),
    words: isRun ? rest.slice(1) : rest,
    sweeps: sweep ?? [],
  };
  await perform(this, {
    command: 'plan',
    json,
    terminal: openTerminal(this.node, json),
    operation: (context) => runPlan(input, context),
    render: renderPlan,
    data: planData,
    isNo: ({ asked }) => asked.prediction.verdict !== 'fits' || asked.policy.some(({ kept }) => !kept),
  });
}
