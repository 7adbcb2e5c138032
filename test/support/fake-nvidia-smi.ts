/**
 * Puts the lookalike of nvidia-smi on a PATH, with cards of its own. It is a program like the real one, so what asks it asks as it would there.
 */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { quoteShell } from '../../src/base/quote-shell.ts';

export interface FakeCards {
  /** To be given to Aerie and to whatever holds memory of these cards. */
  readonly env: Readonly<Record<'PATH' | 'AERIE_LOOKALIKE_GPUS', string>>;
  readonly stateFolder: string;
}

export interface CardShape {
  readonly count: number;
  readonly totalMiB: number;
  readonly baseMiB: number;
  readonly name?: string;
}

const PROGRAM = fileURLToPath(new URL('../../dist/programs/lookalike-nvidia-smi.js', import.meta.url));

export function installFakeNvidiaSmi(folder: string, { count, totalMiB, baseMiB, name }: CardShape): FakeCards {
  const [stateFolder, binFolder] = [join(folder, 'gpus'), join(folder, 'bin')];
  for (const made of [stateFolder, binFolder]) mkdirSync(made, { recursive: true });
  const gpus = Array.from({ length: count }, (_, index) => ({
    ...{ uuid: `GPU-00000000-0000-0000-0000-${String(index).padStart(12, '0')}`, totalMiB, baseMiB },
    name: name ?? 'NVIDIA RTX PRO 6000 Blackwell Server Edition',
  }));
  writeFileSync(join(stateFolder, 'gpus.json'), JSON.stringify(gpus, undefined, 2));
  const shim = join(binFolder, 'nvidia-smi');
  writeFileSync(shim, `#!/bin/sh\nexec ${quoteShell(process.execPath)} ${quoteShell(PROGRAM)} "$@"\n`);
  chmodSync(shim, 0o755);
  return {
    env: { PATH: `${binFolder}${delimiter}${process.env['PATH'] ?? ''}`, AERIE_LOOKALIKE_GPUS: stateFolder },
    stateFolder,
  };
}
