/**
 * GPUs by name. Memory is what the driver reports (`nvidia-smi --query-gpu=memory.total`, MiB), which is less than on the box.
 * Sources: `aic` = the system files of the public project aiconfigurator (2026-08-21), which also give bandwidth, tensor speed and link
 * speed; `smi` = `nvidia-smi` or `rocm-smi` output in public reports; `sheet` = the maker's data sheet for speeds.
 */
import { AerieError } from '../base/errors.ts';
import type { Gpu } from './gpu.ts';

type Link = 'nvlink' | 'pcie' | 'xgmi';
/** Name, MiB, GB/s, dense BF16 TFLOP/s, link, GB/s one way, compute capability, other names, source. */
type Row = readonly [string, number, number, number, Link, number, number, readonly string[], string];

const ROWS: readonly Row[] = [
  [
    'RTX PRO 6000',
    97_887,
    1792,
    468,
    'pcie',
    64,
    12,
    ['RTX PRO 6000 Blackwell', 'RTX 6000 PRO', 'RTX PRO 6000 SE', 'PRO 6000'],
    'aic, smi',
  ],
  ['H100', 81_559, 3350, 989, 'nvlink', 450, 9, ['H100 SXM', 'H100 HBM3', 'H100 80GB', 'H800'], 'smi, aic'],
  ['H100 PCIe', 81_559, 2000, 757, 'pcie', 64, 9, [], 'smi, aic'],
  ['H100 NVL', 95_830, 3900, 835, 'nvlink', 300, 9, ['H100 94GB'], 'smi, sheet'],
  ['H200', 143_771, 4800, 989, 'nvlink', 450, 9, ['H200 SXM', 'H200 141GB', 'H200 NVL'], 'smi, aic'],
  ['GH200', 97_871, 4000, 989, 'nvlink', 450, 9, ['GH200 480GB'], 'smi, sheet'],
  ['H20', 97_871, 4000, 148, 'nvlink', 450, 9, ['H20 96GB'], 'smi, sheet'],
  ['H20-3e', 143_771, 4800, 148, 'nvlink', 450, 9, ['H20 141GB'], 'smi, sheet'],
  ['B200', 183_359, 7700, 2250, 'nvlink', 900, 10, ['B200 SXM', 'B200 180GB'], 'smi, aic'],
  ['B300', 275_040, 7750, 2250, 'nvlink', 900, 10, ['B300 SXM'], 'aic'],
  ['GB200', 189_471, 8000, 2500, 'nvlink', 900, 10, [], 'aic'],
  ['GB300', 284_208, 8000, 2500, 'nvlink', 900, 10, [], 'aic'],
  ['A100 80GB', 81_920, 2039, 312, 'nvlink', 300, 8, ['A100', 'A100 SXM4 80GB', 'A800 80GB'], 'smi, aic'],
  ['A100 PCIe 80GB', 81_920, 1935, 312, 'pcie', 32, 8, [], 'smi, aic'],
  ['A100 40GB', 40_960, 1555, 312, 'nvlink', 300, 8, ['A100 SXM4 40GB', 'A100 PCIe 40GB'], 'smi, sheet'],
  ['A30', 24_576, 933, 165, 'pcie', 32, 8, [], 'smi, aic'],
  ['A40', 46_068, 696, 150, 'pcie', 32, 8, [], 'smi, sheet'],
  ['A10', 23_028, 600, 125, 'pcie', 32, 8, ['A10G'], 'smi, sheet'],
  ['L40S', 46_068, 864, 362, 'pcie', 32, 8, ['L40'], 'aic'],
  ['L4', 23_034, 300, 121, 'pcie', 32, 8, [], 'smi, aic'],
  ['RTX 6000 Ada', 49_140, 960, 364, 'pcie', 32, 8, [], 'smi, sheet'],
  ['RTX A6000', 49_140, 768, 155, 'pcie', 32, 8, ['A6000'], 'smi, sheet'],
  ['RTX 5090', 32_607, 1792, 210, 'pcie', 64, 12, ['5090'], 'smi, sheet'],
  ['RTX 4090', 24_564, 1008, 165, 'pcie', 32, 8, ['4090', 'RTX 4090D'], 'smi, sheet'],
  ['RTX 3090', 24_576, 936, 71, 'pcie', 32, 8, ['3090', 'RTX 3090 Ti'], 'smi, sheet'],
  ['T4', 15_360, 320, 65, 'pcie', 16, 7, [], 'smi, sheet'],
  ['V100 16GB', 16_384, 900, 125, 'nvlink', 150, 7, ['V100'], 'smi, sheet'],
  ['V100 32GB', 32_768, 900, 125, 'nvlink', 150, 7, [], 'smi, sheet'],
  ['GB10', 122_570, 273, 62, 'pcie', 25, 12, ['DGX Spark', 'DGX Spark GB10'], 'smi, sheet'],
  ['MI300X', 196_592, 5300, 1307, 'xgmi', 448, 0, [], 'smi, sheet'],
  ['MI325X', 262_128, 6000, 1307, 'xgmi', 448, 0, [], 'smi, sheet'],
  ['MI355X', 294_896, 8000, 2500, 'xgmi', 538, 0, ['MI350X', 'MI355'], 'smi, sheet'],
];

const SOURCES: Readonly<Record<string, string>> = {
  aic: 'memory and speeds of the GPU: aiconfigurator system files, 2026-08-21',
  smi: 'memory of the GPU: nvidia-smi or rocm-smi in public reports',
  sheet: "speeds of the GPU: the maker's data sheet",
};

export const GPUS: readonly Gpu[] = ROWS.map(
  ([name, memoryMiB, bandwidthGBps, bf16Tflops, kind, GBps, computeCapability, , source]) => ({
    name,
    memoryMiB,
    bandwidthGBps,
    bf16Tflops,
    interconnect: { kind, GBps },
    computeCapability,
    sources: source.split(', ').map((word) => SOURCES[word] ?? word),
  }),
);

/** The GPU meant by a name as people and tools write it: maker, edition and punctuation do not count. */
export function findGpu(name: string): Gpu {
  const wanted = plainOf(name);
  const at = ROWS.findIndex(([own, , , , , , , others]) => [own, ...others].some((one) => plainOf(one) === wanted));
  const sized = at === -1 ? findBySize(name) : at;
  const found = GPUS[sized];
  if (found !== undefined) return found;
  const nearest = rankNames(name).slice(0, 3);
  throw new AerieError('gpu.unknown', `No GPU of the name "${name.slice(0, 60)}" is known.`, {
    because: nearest.length > 0 ? `the nearest names are ${nearest.join(', ')}` : 'no name in the table is near it',
    remedy: `Write one of ${GPUS.map((gpu) => gpu.name).join(', ')}; or --gpu-memory MIB as nvidia-smi prints it.`,
    facts: { gpu: name.slice(0, 60) },
  });
}

/** A card that is in no table, by the memory its driver reports; speeds are left to the person. */
export function describeGpu(name: string, memoryMiB: number): Gpu {
  return {
    name,
    memoryMiB,
    bandwidthGBps: 0,
    bf16Tflops: 0,
    interconnect: { kind: 'pcie', GBps: 0 },
    computeCapability: 0,
    sources: [`memory of the GPU as given: ${memoryMiB} MiB`],
  };
}

/** `80GB`, `96 GB` or `80G` at the end of a name; `A10G` is none. */
const SIZE = /\(?(?<![A-Za-z\d])(\d{2,3})\s*g(?:i?b)?\b\)?/i;

/** `H20-96GB` when no row is called so: the name without its size, and the size within a tenth. */
function findBySize(name: string): number {
  const size = SIZE.exec(name);
  const bare = plainOf(size === null ? name : name.slice(0, size.index));
  if (bare === '') return -1;
  return ROWS.findIndex(([own, memoryMiB, , , , , , others]) => {
    const isSame = [own, ...others].some((one) => plainOf(one.replace(SIZE, '')) === bare);
    return isSame && (size === null || Math.abs(memoryMiB / 1024 / Number(size[1]) - 1) < 0.1);
  });
}

const NOISE =
  /\b(nvidia|geforce|tesla|amd|instinct|quadro|blackwell|server|workstation|edition|max-?q|generation|gpu|sxm\d?|hbm\d?e?|oam)\b/g;

function plainOf(name: string): string {
  return name
    .toLowerCase()
    .replace(/^\s*\d+\s*[x×*]\s*/, '')
    .replace(NOISE, '')
    .replaceAll(/[^a-z0-9]/g, '');
}

/** Names that share letters-and-digits pairs with what was written, the closest first. */
export function rankNames(name: string): string[] {
  const pairs = (text: string) =>
    new Set(Array.from({ length: Math.max(0, text.length - 1) }, (_, at) => text.slice(at, at + 2)));
  const wanted = pairs(plainOf(name.slice(0, 60)));
  const score = (one: string) => {
    const own = pairs(plainOf(one));
    return (2 * [...own].filter((pair) => wanted.has(pair)).length) / Math.max(1, own.size + wanted.size);
  };
  return GPUS.map((gpu) => ({ name: gpu.name, score: score(gpu.name) }))
    .filter((one) => one.score > 0.2)
    .sort((a, b) => b.score - a.score)
    .map((one) => one.name);
}
