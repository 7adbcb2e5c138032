/**
 * Whether docker or Slurm answers, and whether the image is there: asked before anything is started, because the client of a launch says
 * it only into the log. What is said in words that nobody knows refuses nothing: the launch itself will tell.
 */
import { quoteShell } from '../../base/quote-shell.ts';
import { explainClient } from '../../diagnosis/rules/clients.ts';
import type { CommandResult } from '../../host/commands.ts';
import { readClientCommand } from '../../spec/client-command.ts';
import type { Env } from '../recovery/recovery.ts';
import { containCommand } from './contained-command.ts';
import type { LauncherOptions } from './launcher-options.ts';
import type { PreflightCheck } from './preflight-input.ts';

/** A daemon that prunes, a controller under load; setup lines of a slow disk. */
const ASK_MS = 60_000;

type Place = Pick<LauncherOptions, 'machine' | 'place'>;

export async function askClient(options: Place, values: Env): Promise<PreflightCheck[]> {
  const { command } = options.place;
  const client = readClientCommand(command);
  if (client === undefined || client.kind === 'unreadable') return [];
  const { containment } = containCommand(command, { marker: 'none', port: 0, envNames: [] });
  const control = containment?.kind === 'container' ? containment.control : '';
  const name = control === '' ? 'Slurm' : (client.client.split(' ')[0] ?? '');
  const script = control === '' ? 'squeue -h -n aerie-none' : `${control} ps -q --filter label=aerie.launch=none`;
  const result = await ask(options, values, script);
  const refused = judgeClient(name, result);
  if (refused !== undefined) return [refused];
  const image = client.rest[0];
  if (control === '' || image === undefined) return [];
  return judgeImage(image, options.machine.name, await ask(options, values, `${control} image inspect ${quoteShell(image)}`));
}

/** Without the setup lines, as it is asked at every look; what `env:` says holds for all of them. */
function ask({ machine }: Place, values: Env, question: string): Promise<CommandResult> {
  return machine.run({ file: 'sh', args: ['-c', `${question} >/dev/null`], timeoutMs: ASK_MS, env: values });
}

/** undefined: it answers, or nobody can say why not. */
export function judgeClient(name: string, result: CommandResult): PreflightCheck | undefined {
  const check = (verdict: 'warning' | 'refused', says: string, remedy: string): PreflightCheck => ({
    ...{ name: 'client', verdict, says, remedy },
  });
  if (result.kind === 'timeout')
    return check('warning', `${name} has not answered in ${ASK_MS / 1000} s`, 'The launch waits for it.');
  if (result.kind !== 'ended' || result.code === 0) return undefined;
  const said = result.stderr.trim().split('\n').at(-1)?.trim().slice(0, 300) ?? '';
  const known = explainClient(result.stderr);
  if (known !== undefined)
    return check(
      'refused',
      `${name} does not answer: ${known.title} (${said})`,
      known.remedy.replace(/ Nothing was started\.$/, ''),
    );
  if (result.code !== 127) return undefined;
  return check(
    'refused',
    `${name} is not on the PATH that a command has (${said})`,
    `Install it; or, where a shell of yours finds it (command -v ${name === 'Slurm' ? 'squeue' : name}), name its folder beside command:  ` +
      'env: { PATH: /that/folder:/usr/local/bin:/usr/bin:/bin }  It is asked at every look, without the lines of setup:.',
  );
}

export function judgeImage(image: string, machine: string, result: CommandResult): PreflightCheck[] {
  if (result.kind !== 'ended' || !/no such image|image not known/i.test(result.stderr)) return [];
  const says = `the image ${image} is not on ${machine}, and is fetched first: tens of GB for an engine`;
  return [
    {
      name: 'client',
      verdict: 'warning',
      says,
      remedy: `To see how far it is, beforehand on that machine: docker pull ${quoteShell(image)}`,
    },
  ];
}
