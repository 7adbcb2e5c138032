/**
 * Prints what nvidia-smi would, of GPUs that do not exist: `--query-gpu=…`, `--query-compute-apps=…` with `--format=csv[,noheader]
 * [,nounits]`, and `-L`. The cards and who holds them are in the folder that AERIE_LOOKALIKE_GPUS names (`lookalike/gpu-state.ts`).
 * A lookalike for tests and rehearsals: nothing that it says is about a real card.
 *
 * Exit 0: answered. 2: a field or a flag that it does not know, in nvidia-smi's words. 9: no such folder, as where no driver runs.
 */
import { GPUS_VARIABLE, type LivingHold, type LookalikeGpu, readGpus, readHolds } from './lookalike/gpu-state.ts';

interface State {
  readonly gpus: readonly LookalikeGpu[];
  readonly holds: readonly LivingHold[];
}

/** A value, and its unit where it has one. */
type Cell = readonly [value: string, unit: string];

const NOT_AVAILABLE: Cell = ['[N/A]', ''];

const GPU_FIELDS: Readonly<Record<string, (gpu: LookalikeGpu, index: number, state: State) => Cell>> = {
  index: (_, index) => [String(index), ''],
  uuid: ({ uuid }) => [uuid, ''],
  name: ({ name }) => [name, ''],
  'memory.total': ({ totalMiB }) => [String(totalMiB), 'MiB'],
  'memory.used': (gpu, index, state) => [String(usedMiB(gpu, index, state)), 'MiB'],
  'memory.free': (gpu, index, state) => [String(Math.max(0, gpu.totalMiB - usedMiB(gpu, index, state))), 'MiB'],
  'utilization.gpu': ({ utilisationPercent }, index, { holds }) => {
    if (utilisationPercent === null) return NOT_AVAILABLE;
    return [String(utilisationPercent ?? (holds.some(({ gpus }) => (gpus[String(index)] ?? 0) > 0) ? 97 : 0)), '%'];
  },
};

const APP_FIELDS: Readonly<Record<string, (hold: LivingHold, gpu: LookalikeGpu, mib: number) => Cell>> = {
  gpu_uuid: (_, { uuid }) => [uuid, ''],
  gpu_name: (_, { name }) => [name, ''],
  pid: ({ pid }) => [String(pid), ''],
  process_name: ({ name }) => [name, ''],
  used_memory: (_, __, mib) => [String(mib), 'MiB'],
  used_gpu_memory: (_, __, mib) => [String(mib), 'MiB'],
};
const UNITS: Readonly<Record<string, string>> = { 'utilization.gpu': '%' };

function usedMiB({ totalMiB, baseMiB }: LookalikeGpu, index: number, { holds }: State): number {
  return Math.min(totalMiB, baseMiB + holds.reduce((sum, { gpus }) => sum + (gpus[String(index)] ?? 0), 0));
}

interface Answer {
  readonly exit: number;
  readonly text: string;
}

function answer(args: readonly string[], state: State): Answer {
  const options = new Map(args.map((arg) => splitOption(arg)));
  const format = (options.get('--format') ?? '').split(',').map((word) => word.trim());
  const queryGpu = options.get('--query-gpu');
  const queryApps = options.get('--query-compute-apps');
  const unknown = [...options.keys()].find((name) => !KNOWN.has(name));
  if (unknown !== undefined)
    return { exit: 2, text: `Invalid combination of input arguments. Option ${unknown} is not recognized.` };
  if (options.has('-L') || options.has('--list-gpus'))
    return { exit: 0, text: state.gpus.map(({ name, uuid }, index) => `GPU ${index}: ${name} (UUID: ${uuid})`).join('\n') };
  if (!format.includes('csv') || (queryGpu === undefined) === (queryApps === undefined))
    return {
      exit: 2,
      text: 'The lookalike of nvidia-smi answers --query-gpu or --query-compute-apps with --format=csv, and -L.',
    };
  return queryGpu !== undefined ? listGpus(queryGpu, format, state) : listApps(queryApps ?? '', format, state);
}

const KNOWN: ReadonlySet<string> = new Set(['--query-gpu', '--query-compute-apps', '--format', '-L', '--list-gpus']);

function listGpus(query: string, format: readonly string[], state: State): Answer {
  return table(query, format, Object.keys(GPU_FIELDS), (fields) =>
    state.gpus.map((gpu, index) => fields.map((field) => GPU_FIELDS[field]?.(gpu, index, state) ?? NOT_AVAILABLE)),
  );
}

function listApps(query: string, format: readonly string[], { gpus, holds }: State): Answer {
  return table(query, format, Object.keys(APP_FIELDS), (fields) =>
    gpus.flatMap((gpu, index) =>
      holds
        .filter((hold) => (hold.gpus[String(index)] ?? 0) > 0)
        .map((hold) => fields.map((field) => APP_FIELDS[field]?.(hold, gpu, hold.gpus[String(index)] ?? 0) ?? NOT_AVAILABLE)),
    ),
  );
}

function table(
  query: string,
  format: readonly string[],
  known: readonly string[],
  rows: (fields: readonly string[]) => Cell[][],
): Answer {
  const fields = query.split(',').map((field) => field.trim());
  const wrong = fields.find((field) => !known.includes(field));
  if (wrong !== undefined) return { exit: 2, text: `Field "${wrong}" is not a valid field to query.` };
  const isBare = format.includes('nounits');
  const header = fields.map((field) => `${field}${unitOf(field)}`).join(', ');
  const lines = rows(fields).map((cells) =>
    cells.map(([value, unit]) => (isBare || unit === '' ? value : `${value} ${unit}`)).join(', '),
  );
  return { exit: 0, text: [...(format.includes('noheader') ? [] : [header]), ...lines].join('\n') };
}

function unitOf(field: string): string {
  const unit = UNITS[field] ?? (/memory/.test(field) ? 'MiB' : '');
  return unit === '' ? '' : ` [${unit}]`;
}

function splitOption(arg: string): [string, string] {
  const at = arg.indexOf('=');
  return at < 0 ? [arg, ''] : [arg.slice(0, at), arg.slice(at + 1)];
}

function main(): Answer {
  const folder = process.env[GPUS_VARIABLE] ?? '';
  try {
    return answer(process.argv.slice(2), { gpus: readGpus(folder), holds: readHolds(folder) });
  } catch (thrown) {
    const because = thrown instanceof Error ? thrown.message.split('\n')[0] : String(thrown);
    return { exit: 9, text: `The lookalike of nvidia-smi has no cards: ${GPUS_VARIABLE}=${folder}: ${because}` };
  }
}

const { exit, text } = main();
process.exitCode = exit;
process.stdout.write(text === '' ? '' : `${text}\n`);
