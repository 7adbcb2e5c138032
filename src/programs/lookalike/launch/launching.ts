/** One launch under way: what its script reads and what it may do. Types, and the few deeds that both engines share. */
import { createServer, type Server } from 'node:net';
import type { ParsedFlags } from '../../../engine/launch-flags.ts';
import type { Scenario } from '../scenario.ts';
import { type Dying, dieOfRank, type Failure, outOfMemory } from './deaths.ts';
import { countRanks } from './envelope.ts';
import { framesOf } from './frames.ts';
import type { LifePlan } from './plan-life.ts';
import type { Gpus, Ranks } from './ranks.ts';
import type { Stage } from './stage.ts';

export interface Launching {
  readonly flags: ParsedFlags;
  readonly model: string;
  readonly host: string;
  readonly port: number;
  readonly scenario: Scenario;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stage: Stage;
  readonly dying: Dying;
  readonly gpus: Gpus;
  plan(): LifePlan;
  /** Plans anew with what others hold of the GPUs now; the answer: free before the weights, GiB by rank. */
  measure(): readonly number[];
  startRanks(titles: readonly string[]): void;
  ranks(): Ranks | undefined;
  /** As bound: what `port` 0 became. */
  actualPort(): number;
  /** Opens the port; from now on requests are answered. */
  listen(): Promise<void>;
  /** Its own warm-up has ended. */
  becomeReady(): void;
}

/** By rank, where all ranks say the same. */
export function eachRank(launching: Launching, speak: (rank: number) => void): void {
  for (let rank = 0; rank < countRanks(launching.plan().launch); rank += 1) speak(rank);
}

/** The GPU has no room for `triedGiB` in the phase that is played. */
export function dieOfMemory(launching: Launching, triedGiB: number, freeGiB: number, where: Partial<Failure> = {}): never {
  const { stage, dying, plan } = launching;
  const phase = stage.phase();
  const { rank = 0, frames = framesOf(plan().launch.engine, phase) } = where;
  const words = outOfMemory(plan(), rank, triedGiB, freeGiB);
  const error = phase === 'cuda-graph-capture' && plan().launch.engine === 'sglang' ? captureFailed(words) : words;
  return dieOfRank(dying, { rank, frames, error });
}

function captureFailed(words: string): string {
  return `Exception: Capture cuda graph failed: ${words.replace(/^[\w.]+: /, '')}
Possible solutions:
1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)
2. set --cuda-graph-max-bs to a smaller value (e.g., 16)
3. disable torch compile by not using --enable-torch-compile
4. disable CUDA graph by --disable-cuda-graph. (Not recommended. Huge performance loss)
`;
}

/**
 * The port at which the ranks meet, where the flags name one: taken for as long as the process lives, so that a second launch
 * with the same one fails as it does there.
 */
export async function takeRendezvous(launching: Launching): Promise<void> {
  const { flags, dying, plan, stage } = launching;
  const port = rendezvousPort(flags);
  if (port === undefined || (await hold(port))) return;
  const error =
    plan().launch.engine === 'sglang' && stage.phase() === 'argument-parsing'
      ? `ValueError: Port is already in use. dist_init_port=${port}`
      : `torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: ${port}, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use`;
  dieOfRank(dying, { rank: 0, frames: framesOf(plan().launch.engine, 'distributed-init'), error });
}

function rendezvousPort({ values }: ParsedFlags): number | undefined {
  const address = values['dist-init-addr'];
  const found = typeof address === 'string' ? /:(\d+)$/.exec(address)?.[1] : undefined;
  const port = found ?? values['nccl-port'] ?? values['master-port'];
  return port === undefined ? undefined : Number(port);
}

const held: Server[] = [];

function hold(port: number): Promise<boolean> {
  const server = createServer();
  held.push(server);
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen({ port, host: '127.0.0.1' }, () => resolve(true));
    server.unref();
  });
}
