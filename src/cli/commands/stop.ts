import { runStop } from '../../app/stop.ts';
import type { CliContext } from '../cli-context.ts';
import type { StopFlags } from '../flags.ts';
import { perform } from '../perform.ts';
import { renderStop, stopData } from '../render/stop.ts';
import { openTerminal } from '../terminal.ts';

export async function stop(this: CliContext, { json, now }: StopFlags, target: string): Promise<void> {
  await perform(this, {
    command: 'stop',
    interrupted: 'the waiting ends; the worker ends all the same',
    json,
    terminal: openTerminal(this.node, json),
    operation: (context) => runStop({ run: target, now }, context),
    render: renderStop,
    data: stopData,
  });
}
