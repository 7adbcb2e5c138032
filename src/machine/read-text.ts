/** Small text files of a machine: a config, a template. */
import type { Machine } from './machine.ts';

/** undefined: there is none, or it has more than `most` bytes. */
export async function readMachineText(machine: Machine, path: string, most: number): Promise<string | undefined> {
  const slice = await machine.readFile(path, 0, most);
  if (slice === undefined || slice.size > most) return undefined;
  return new TextDecoder().decode(slice.bytes);
}
