import { runPolicyAdd } from '../../app/policy-add.ts';
import type { CliContext } from '../cli-context.ts';
import type { PolicyAddFlags } from '../flags.ts';
import { perform } from '../perform.ts';
import { renderPolicyAdd } from '../render/policy-add.ts';
import { openTerminal } from '../terminal.ts';

export async function policyAdd(this: CliContext, { json, ...rule }: PolicyAddFlags, target: string): Promise<void> {
  await perform(this, {
    command: 'policy add',
    json,
    terminal: openTerminal(this.node, json),
    operation: (context) => runPolicyAdd({ run: target, ...rule }, context),
    render: renderPolicyAdd,
  });
}
