/** Commands about policy: add a rule to a run that has begun. Loads nothing but stricli. */
import { buildCommand, buildRouteMap } from '@stricli/core';
import type { CliContext } from '../cli-context.ts';
import type { PolicyAddFlags } from '../flags.ts';
import { json, onRun } from './parameters.ts';

const words = (brief: string, placeholder: string) =>
  ({ kind: 'parsed', parse: String, variadic: true, optional: true, brief, placeholder }) as const;

const policyAddCommand = buildCommand<PolicyAddFlags, [string], CliContext>({
  loader: async () => (await import('../commands/policy-add.ts')).policyAdd,
  parameters: {
    flags: {
      ...json,
      forbid: words('What nobody may do: kv-cache=below-16-bit, weights=requantised, …', 'SUBJECT=VALUE'),
      require: words('What must be so: kv-cache=bf16, weights=as-published', 'SUBJECT=VALUE'),
      min: words('A figure that must be reached: pool=150000, context=32768, …', 'FIGURE=N'),
      max: words('A figure that must not be passed', 'FIGURE=N'),
      because: { kind: 'parsed', parse: String, brief: 'The reason, for the person who meets the rule', placeholder: 'TEXT' },
      by: { kind: 'parsed', parse: String, brief: 'Who decided it', placeholder: 'NAME' },
    },
    positional: onRun,
  },
  docs: {
    brief: 'Add a rule to a run that has begun, and withdraw the records that break it',
    fullDescription:
      'A rule as in a run file, for every later start too. Records of launches that break it are never exported, their tokens are ' +
      'back in the budget, and their prompts are asked again. Where a worker holds the run, it stops the servers that break ' +
      'the rule and does the rest.\n\n' +
      'Example: aerie policy add run.yaml --forbid kv-cache=below-16-bit --because "FP8 KV degrades it" --by "model owner"',
  },
});

export const policyRoutes = buildRouteMap({
  routes: { add: policyAddCommand },
  docs: { brief: 'What nobody may do, and why: add a rule to a run that has begun' },
});
