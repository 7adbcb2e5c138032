/** Where a probed server listens, by what its machine and docker show. Pure. */
import type { EngineName } from '../../engine/dialect.ts';
import type { EngineProcess } from '../../machine/survey/find-engines.ts';
import { addressOf, type ContainerFacts, isPortTold, serverAddressOf } from '../../server/attach/container-facts.ts';
import type { Address } from './server-questions.ts';

export function hasAddress({ url, port }: Address): boolean {
  return url !== '' || port !== 0;
}

/** By its own command line. */
export function listensAs({ port, address }: EngineProcess): Address {
  return { url: '', port, host: address === '127.0.0.1' ? '' : address };
}

/** By what docker publishes; undefined: its port stands in a script that the container begins with, and its process is not seen yet. */
export function listensIn(
  container: ContainerFacts,
  process: EngineProcess | undefined,
  engine: EngineName | undefined,
): Address | undefined {
  if (process === undefined && !isPortTold(container)) return undefined;
  const found =
    process === undefined
      ? serverAddressOf(container, engine === 'vllm' ? 'vllm' : 'sglang')
      : addressOf(container, process.port, process.port);
  if (found.kind === 'unknown') return undefined;
  return { url: '', port: found.port, host: found.address === '127.0.0.1' ? '' : found.address };
}
