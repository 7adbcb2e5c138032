/** What the launches of a run need of their machine: GPUs, the engine's command, a free port, a way to it. Nothing is started. */
import { AerieError } from '../../base/errors.ts';
import { quoteShell } from '../../base/quote-shell.ts';
import { dialectOf } from '../../engine/dialects.ts';
import { portIn } from '../../engine/launching.ts';
import { inLaunchShell } from '../../machine/launch-shell.ts';
import type { Machine } from '../../machine/machine.ts';
import { findFreePort } from '../../server/launch/find-free-port.ts';
import type { RunSpec, ServerSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';
import { livingLaunches } from '../launch-history.ts';
import { isLaunched } from '../server/choose-servers.ts';
import { launchPaths } from '../servers/launch-paths.ts';
import { machineOf } from '../servers/machine-of.ts';
import { type DoctorCheck, fails, ok, warning } from './finding.ts';
import { checkWay } from './measure-way.ts';

export async function checkLaunches(run: RunSpec, context: OperationContext): Promise<DoctorCheck[]> {
  const launched = run.servers.filter(isLaunched);
  if (launched.length === 0) return [];
  const living = await livingLaunches(run, context);
  const checks: DoctorCheck[] = [];
  const gpusOf = new Set<string>();
  for (const server of launched) {
    const machine = machineOf(server, context, DOCTOR_PATIENCE_MS);
    const reached = await checkReach(machine);
    if (reached !== undefined && !gpusOf.has(machine.name)) checks.push(reached);
    if (reached?.verdict === 'fails') continue;
    if (!gpusOf.has(machine.name)) checks.push(await checkGpus(machine));
    gpusOf.add(machine.name);
    checks.push(await checkCommand(run, server, machine));
    const own = living.find((launch) => launch.server === server.name && launch.unseen === '');
    const port = portIn(server.flags) ?? server.port;
    if (own === undefined && port > 0) checks.push(await checkPort(server, port, machine));
    if (machine.isHere) continue;
    const wayTo = own?.port ?? (port > 0 ? port : await findFreePort(machine, context.host.random));
    checks.push(await checkWay(server.name, wayTo, machine, context));
  }
  return checks;
}

/** Servers that are there already, behind ssh. */
export async function checkAttached(run: RunSpec, context: OperationContext): Promise<DoctorCheck[]> {
  const checks: DoctorCheck[] = [];
  for (const server of run.servers) {
    const { attach } = server;
    const machine = machineOf(server, context, DOCTOR_PATIENCE_MS);
    if (attach?.kind !== 'port' || machine.isHere) continue;
    const reached = await checkReach(machine);
    if (reached !== undefined) checks.push(reached);
    if (reached?.verdict !== 'fails') checks.push(await checkWay(server.name, attach.port, machine, context));
  }
  return checks;
}

/** As for a person who waits. */
const DOCTOR_PATIENCE_MS = 5_000;

/** undefined: it is this machine. */
async function checkReach(machine: Machine): Promise<DoctorCheck | undefined> {
  if (machine.isHere) return undefined;
  const name = `machine ${machine.name}`;
  try {
    return ok(name, `ssh reaches it; its home folder is ${await machine.home()}`);
  } catch (thrown) {
    if (!(thrown instanceof AerieError)) throw thrown;
    return fails(name, thrown.message, thrown.detail.remedy);
  }
}

async function checkGpus(machine: Machine): Promise<DoctorCheck> {
  const look = await machine.gpus();
  const name = machine.isHere ? 'GPUs' : `GPUs of ${machine.name}`;
  if (look.kind === 'read') {
    const names = [...new Set(look.gpus.map(({ name }) => name))].join(', ');
    return ok(name, `nvidia-smi names ${look.gpus.length}: ${names}`, { count: look.gpus.length });
  }
  const why = look.kind === 'absent' ? `there is no nvidia-smi on ${machine.name}` : look.because;
  return fails(
    name,
    why,
    'Install the driver, or start the container with its GPUs (docker --gpus all); aerie rehearse needs none.',
  );
}

/** Setup lines may load an environment from a slow disk. */
const COMMAND_MS = 60_000;

async function checkCommand(run: RunSpec, server: ServerSpec, machine: Machine): Promise<DoctorCheck> {
  const name = `command of ${server.name}`;
  const command = server.command === '' ? (dialectOf(server.engine).launching?.usualCommand ?? '') : server.command;
  const [, program = '', module] = /^\s*(?:\w+=\S*\s+)*(\S+)(?:\s+-m\s+(\w+))?/.exec(command) ?? [];
  const find = 'import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)';
  const script = [
    `cd -- ${quoteShell((await launchPaths(run, server, machine)).workFolder)}`,
    ...server.setup,
    // As the shell reads it in the launch: a variable or ~ in it counts.
    `command -v ${program}${module === undefined ? '' : ` && ${program} -c ${quoteShell(find)} ${quoteShell(module)}`}`,
  ].join('\n');
  const result = await machine.run({ ...inLaunchShell(script), timeoutMs: COMMAND_MS });
  const what = module === undefined ? program : `${program} with the module ${module}`;
  if (result.kind === 'ended' && result.code === 0)
    return ok(name, `${what} is ${machine.isHere ? 'here' : `on ${machine.name}`}`);
  // Setup lines that need a terminal or conda's hook do more in the launch than here.
  const says = server.setup.length === 0 ? fails : warning;
  const where = machine.isHere ? '' : ` on ${machine.name}`;
  return says(
    name,
    `${what} was not found${where}`,
    `Install the engine${where}, or name it with setup: or command: in the run file.`,
  );
}

async function checkPort({ name }: ServerSpec, port: number, machine: Machine): Promise<DoctorCheck> {
  const owner = await machine.portOwner(port);
  const check = `port of ${name}`;
  if (owner === undefined) return ok(check, `${port} is free`, { port });
  const who = owner.pid === undefined ? 'somebody' : `pid ${owner.pid} (${owner.command.slice(0, 80)})`;
  return fails(check, `${who} listens on ${port}`, 'End it, or give the server another port: in the run file.', { port });
}
