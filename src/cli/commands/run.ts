import { asWorker } from '../../app/detach/as-worker.ts';
import { runDetached } from '../../app/detach/start-worker.ts';
import { runRun } from '../../app/run.ts';
import type { CliContext } from '../cli-context.ts';
import type { RunFlags } from '../flags.ts';
import { FINISHES, perform } from '../perform.ts';
import { detachData, renderDetach } from '../render/detach.ts';
import { renderRun } from '../render/run.ts';
import { openTerminal } from '../terminal.ts';

export async function run(this: CliContext, flags: RunFlags, target: string): Promise<void> {
  const { json, detach, ...input } = flags;
  const terminal = openTerminal(this.node, json);
  if (detach) {
    const command = commandWithout(this.node, ['--detach', '--json']);
    await perform(this, {
      ...{ command: 'run', json, terminal, render: renderDetach, data: detachData },
      interrupted: 'the worker ends too, and commits',
      operation: (context) => runDetached({ run: target, command }, context),
    });
    return;
  }
  const worker = asWorker(this.node.env);
  await perform(this, {
    ...{ command: 'run', json, terminal, render: renderRun, interrupted: FINISHES },
    operation: (context) => runRun({ run: target, ...input }, worker === undefined ? context : worker.tell(context)),
    ...(worker === undefined ? {} : { onError: (error) => worker.failed(error) }),
  });
}

/** What was typed, but for flags that are this command's and not the worker's. What comes after `--` is no flag. */
function commandWithout({ execPath, execArgv, argv }: NodeJS.Process, left: readonly string[]) {
  const [, program = '', ...words] = argv;
  const end = words.includes('--') ? words.indexOf('--') : words.length;
  const kept = words.filter((word, at) => at >= end || !left.some((flag) => word === flag || word.startsWith(`${flag}=`)));
  return { file: execPath, args: [...execArgv, program, ...kept] };
}
