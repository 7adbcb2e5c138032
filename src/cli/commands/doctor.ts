import { runDoctor } from '../../app/doctor.ts';
import type { CliContext } from '../cli-context.ts';
import type { CommonFlags } from '../flags.ts';
import { perform } from '../perform.ts';
import { renderDoctor } from '../render/doctor.ts';
import { openTerminal } from '../terminal.ts';

export async function doctor(this: CliContext, flags: CommonFlags, target?: string): Promise<void> {
  await perform(this, {
    command: 'doctor',
    json: flags.json,
    terminal: openTerminal(this.node, flags.json),
    operation: (context) => runDoctor(target === undefined ? {} : { target }, context),
    render: renderDoctor,
    isNo: ({ isFit }) => !isFit,
  });
}
