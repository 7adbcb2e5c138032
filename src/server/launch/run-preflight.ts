/**
 * Looks at the machine before a launch and lets `judgePreflight` say what that means. What is refused is thrown; a warning
 * is an event and the launch goes on, because a person may know better.
 */
import { dirname, join } from 'node:path/posix';
import { AerieError } from '../../base/errors.ts';
import { quoteShell } from '../../base/quote-shell.ts';
import type { Plan } from '../../capacity/plan-launch.ts';
import { isWholeHelp, parseHelpFlags } from '../../engine/help-flags.ts';
import { type LaunchFlags, renderCommand } from '../../engine/launching.ts';
import { inLaunchShell } from '../../machine/launch-shell.ts';
import type { GpuReading } from '../../machine/machine.ts';
import { readClientCommand } from '../../spec/client-command.ts';
import { findHolders } from '../find-holders.ts';
import type { Env, Flags } from '../recovery/recovery.ts';
import type { LauncherOptions } from './launcher-options.ts';
import { endNamedHolder } from './make-room.ts';
import { judgePreflight } from './preflight.ts';
import { askClient } from './preflight-client.ts';
import { asLaunchMeets, portsMet } from './preflight-contained.ts';
import type { PreflightCheck } from './preflight-input.ts';
import { isHubName, modelOf } from './preflight-model.ts';
import { policyBeforeLaunch } from './preflight-plan.ts';
import { portsOf } from './preflight-ports.ts';

export interface PreflightQuestion {
  /** As the person and recovery want them. */
  readonly flags: Flags;
  /** As they are sent. */
  readonly effective: LaunchFlags;
  /** The environment with its secrets: it is given to the launcher's own `--help`. */
  readonly values: Env;
  /** Of an earlier launch; empty = never seen. */
  readonly baseline: readonly GpuReading[];
  readonly workFolder: string;
  readonly logPath: string;
}

/** Importing an engine takes 10 to 30 s, minutes from a network disk. */
const HELP_TIMEOUT_MS = 180_000;

/** The readings of the GPUs with nobody on them. Throws `server.not-launched`. */
export async function runPreflight(options: LauncherOptions, question: PreflightQuestion): Promise<readonly GpuReading[]> {
  const { machine, engine, policy } = options;
  tell(options, await askClient(options, question.values));
  // Where there is a baseline, who holds more than it has been dealt with before.
  if (question.baseline.length === 0) await endNamedHolder(options, question.baseline);
  const plan = options.plan(question.flags);
  const ports = await Promise.all(
    portsMet(options.place.command, portsOf(engine, question.effective)).map(async (one) => ({
      ...one,
      owner: await machine.portOwner(one.port),
    })),
  );
  const cache = await hubCacheOf(options, question.values);
  const folder = dirname(question.logPath);
  const shown = { gpus: await machine.gpus(), resources: await machine.resources([cache, folder]) };
  const { gpus, resources } = asLaunchMeets(options.place.command, shown);
  const { baseline } = question;
  const { checks } = judgePreflight({
    ...{ engine, flags: question.effective, plan, ports, gpus, resources },
    policy: policyBeforeLaunch({ flags: question.flags }, plan, policy()),
    holders: gpus.kind === 'read' ? await findHolders(machine, options.outer) : undefined,
    baselineMiB: baseline.length === 0 ? undefined : Object.fromEntries(baseline.map(({ index, usedMiB }) => [index, usedMiB])),
    visibleGpus: visibleOf(question.values),
    help: await askHelp(options, question),
    modelPath: await lookForModel(options, question),
    logDisk: { folder, freeBytes: shown.resources.diskFreeBytes[1] },
    downloadBytes: await bytesToFetch(options, plan, { cache, effective: question.effective }),
    diskFreeBytes: resources.diskFreeBytes[0],
  });
  tell(options, checks);
  return baseline.length > 0 || gpus.kind !== 'read' ? baseline : gpus.gpus;
}

function tell({ name, emit, machine }: LauncherOptions, checks: readonly PreflightCheck[]): void {
  for (const { name: check, verdict, says, remedy } of checks) {
    if (verdict !== 'warning') continue;
    emit({ kind: 'launch.preflight', subject: name, facts: { check, verdict, says, ...(remedy === '' ? {} : { remedy }) } });
  }
  const refused = checks.filter(({ verdict }) => verdict === 'refused');
  const [first] = refused;
  if (first === undefined) return;
  const on = machine.isHere ? '' : ` on ${machine.name}`;
  throw new AerieError('server.not-launched', `${name} was not launched${on}: ${first.says}.`, {
    evidence: refused.slice(1).map(({ says }) => says),
    remedy: [...refused.map(({ remedy }) => remedy).filter((remedy) => remedy !== ''), 'Nothing was started.'].join('\n'),
    facts: { check: first.name },
  });
}

/** The first spelling of the question that gets the whole list; undefined: none did. */
async function askHelp(
  { machine, engine, place, dialect }: LauncherOptions,
  { values, workFolder }: PreflightQuestion,
): Promise<string | undefined> {
  const { launching } = dialect;
  if (launching === undefined) return undefined;
  const command = place.command === '' ? launching.usualCommand : place.command;
  // Asking would start a container, which takes GPUs, a name and a pull of its image, or a job, which waits in a queue.
  if (readClientCommand(command) !== undefined) return undefined;
  for (const words of launching.helpWords) {
    const script = [...place.setup, `cd -- ${quoteShell(workFolder)}`, renderCommand(command, words)].join('\n');
    const result = await machine.run({ ...inLaunchShell(script), timeoutMs: HELP_TIMEOUT_MS, env: values });
    if (result.kind === 'ended' && result.code === 0 && isWholeHelp(engine, parseHelpFlags(result.stdout))) return result.stdout;
  }
  return undefined;
}

function visibleOf(values: Env): readonly number[] | undefined {
  const listed = (values['CUDA_VISIBLE_DEVICES'] ?? '').split(',').map((one) => one.trim());
  return listed.every((one) => /^\d+$/.test(one)) ? listed.map(Number) : undefined;
}

/** Where both engines fetch models to. */
async function hubCacheOf({ machine, host: { env } }: LauncherOptions, values: Env): Promise<string> {
  const met = machine.isHere ? { ...env, ...values } : values; // a launch here has our environment
  const home = met['HF_HOME'] ?? join(await machine.home(), '.cache', 'huggingface');
  return met['HF_HUB_CACHE'] ?? join(home, 'hub');
}

/** undefined: it is no path, or none that this machine can tell of. */
async function lookForModel(
  { machine, engine, place, isPlayed }: LauncherOptions,
  { effective }: PreflightQuestion,
): Promise<{ readonly path: string; readonly isThere: boolean | undefined } | undefined> {
  const path = modelOf(engine, effective, place.model);
  if (!path.startsWith('/') || isPlayed === true || readClientCommand(place.command) !== undefined) return undefined;
  const result = await machine.run({ file: 'sh', args: ['-c', 'test -e "$1"', 'sh', path], timeoutMs: 30_000 });
  return { path, isThere: result.kind === 'ended' ? result.code === 0 : undefined };
}

/** By the weights' size and what lies in the cache already; undefined = not known. */
async function bytesToFetch(
  { machine, engine, place }: LauncherOptions,
  plan: Plan | undefined,
  { cache, effective }: { readonly cache: string; readonly effective: LaunchFlags },
): Promise<number | undefined> {
  const model = modelOf(engine, effective, place.model);
  if (!isHubName(model)) return 0; // a folder of the machine
  if (plan === undefined) return undefined;
  const { launch, prediction } = plan;
  const whole = prediction.weightsGiBPerGpu * launch.tp * launch.pp * 2 ** 30;
  const folder = join(cache, `models--${model.replace('/', '--')}`);
  const result = await machine.run({ file: 'du', args: ['-sk', folder], timeoutMs: 30_000 });
  const there = result.kind === 'ended' ? Number(/^\d+/.exec(result.stdout)?.[0] ?? 0) * 1024 : 0;
  return Math.max(0, whole - there);
}
