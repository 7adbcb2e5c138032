/** `aerie init`: flags where they are given, questions on a terminal for the rest. */
import { basename } from 'node:path';
import { cancel, isCancel, text } from '@clack/prompts';
import { runInit } from '../../app/init.ts';
import type { CliContext } from '../cli-context.ts';
import type { InitFlags } from '../flags.ts';
import { perform } from '../perform.ts';
import { renderInit } from '../render/init.ts';
import { openTerminal } from '../terminal.ts';

export async function init(this: CliContext, flags: InitFlags, file = 'run.yaml'): Promise<void> {
  const ask = this.node.stdin.isTTY === true && this.node.stdout.isTTY === true && !flags.json;
  const from = flags.from ?? (ask ? await question('File with the prompts', 'prompts.jsonl') : 'prompts.jsonl');
  if (from === undefined) return;
  const named = basename(file).replace(/\.ya?ml$/i, '') || 'run';
  const run = flags.run ?? (ask ? await question('Name of the run', named) : named);
  if (run === undefined) return;
  const model = flags.model ?? (await modelOf(flags, ask));
  if (model === undefined) return;
  await perform(this, {
    command: 'init',
    json: flags.json,
    terminal: openTerminal(this.node, flags.json),
    operation: (context) =>
      runInit(
        {
          ...{ file, run, from, model, force: flags.force },
          ...(flags.engine === undefined ? {} : { engine: flags.engine }),
          ...(flags.attach === undefined ? {} : { attach: flags.attach }),
          ...(flags.machine === undefined ? {} : { machine: flags.machine }),
        },
        context,
      ),
    render: (report) => renderInit(report, file),
  });
}

/** undefined when the person pressed Ctrl-C. */
async function modelOf({ attach, engine, machine }: InitFlags, ask: boolean): Promise<string | undefined> {
  if (machine !== undefined) {
    return ask ? await question(`Model: OWNER/NAME on the hub, or its folder on ${machine}`, '') : '';
  }
  return attach === undefined && engine === undefined ? 'default' : 'set-the-name-that-the-server-serves';
}

/** undefined when the person pressed Ctrl-C. */
async function question(message: string, initialValue: string): Promise<string | undefined> {
  const answer = await text({ message, initialValue });
  if (!isCancel(answer)) return answer;
  cancel('Nothing was written.');
  return undefined;
}
