/** Ports of a launch. A port that is taken shows only after the whole load in SGLang, which is why it is asked before. Pure. */
import type { PlannedEngine } from '../../capacity/engine-launch.ts';
import { findFlag, type LaunchFlag, type LaunchFlags, portIn, VLLM_LINE } from '../../engine/launching.ts';
import type { PortLook, PreflightCheck, PreflightInput } from './preflight-input.ts';

/** SGLang's data-parallel controller meets its groups this far above the HTTP port (`ZMQ_TCP_PORT_DELTA`). */
const SGLANG_DP_DELTA = 233;
/** vLLM's `--data-parallel-rpc-port` and `--master-port` where nobody says them. */
const VLLM_RPC_PORT = 29_550;
const VLLM_MASTER_PORT = 29_501;

/** The ports that a launch will listen on; those that the engine picks among free ones are left out. */
export function portsOf(engine: PlannedEngine, flags: LaunchFlags): readonly Omit<PortLook, 'owner'>[] {
  const at = (...names: string[]) => findFlag(flags, names, VLLM_LINE);
  const http = portIn(flags);
  const rendezvous = engine === 'sglang' ? sglangRendezvous(at, http) : vllmRendezvous(at);
  const all = [...(http === undefined ? [] : [{ port: http, what: 'HTTP' }]), ...rendezvous];
  return all.filter(({ port }, place) => all.findIndex((one) => one.port === port) === place);
}

type At = (...names: string[]) => LaunchFlag | undefined;

function sglangRendezvous(at: At, http: number | undefined): Omit<PortLook, 'owner'>[] {
  const ports: Omit<PortLook, 'owner'>[] = [];
  const address = at('dist-init-addr', 'nccl-init-addr');
  const written = portOf(
    String(address ?? '')
      .split(':')
      .at(-1),
  );
  if (written !== undefined) ports.push({ port: written, what: 'rendezvous' });
  else if (at('enable-dp-attention') === true && http !== undefined)
    ports.push({ port: http + SGLANG_DP_DELTA, what: 'rendezvous' });
  const nccl = portOf(at('nccl-port'));
  if (nccl !== undefined) ports.push({ port: nccl, what: 'NCCL' });
  return ports;
}

function vllmRendezvous(at: At): Omit<PortLook, 'owner'>[] {
  const ports: Omit<PortLook, 'owner'>[] = [];
  const rpc = portOf(at('data-parallel-rpc-port', 'dpp'));
  const isParallel = Number(at('data-parallel-size', 'dp') ?? 1) > 1;
  const isSpread = Number(at('nnodes') ?? 1) > 1;
  // Groups of one machine meet over files; a port is only listened on where it is written, or several machines meet.
  if (rpc !== undefined || (isParallel && isSpread)) ports.push({ port: rpc ?? VLLM_RPC_PORT, what: 'data-parallel' });
  if (isSpread) ports.push({ port: portOf(at('master-port')) ?? VLLM_MASTER_PORT, what: 'rendezvous' });
  return ports;
}

function portOf(value: unknown): number | undefined {
  const port = Number(value);
  return value !== '' && Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined;
}

export function checkPorts({ ports }: PreflightInput): PreflightCheck[] {
  return ports.map(({ port, what, owner }) => {
    if (owner === undefined) return { name: 'port', verdict: 'ok', says: `port ${port} (${what}) is free`, remedy: '' };
    const who =
      owner.pid === undefined ? 'someone who may not be seen from here' : `pid ${owner.pid} (${owner.command.slice(0, 120)})`;
    const see = owner.pid === undefined ? ` Who it is: sudo ss -ltnp 'sport = :${port}'` : '';
    return {
      name: 'port',
      verdict: 'refused',
      says: `port ${port} (${what}) is held by ${who}`,
      remedy: `Stop it, or write another port in the run file; a server that should be used as it is goes under attach:.${see}`,
    };
  });
}
