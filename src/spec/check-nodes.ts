/**
 * A launch over several nodes. Pure, over the file as written. Aerie launches a server on one machine and ends there what it
 * launched; ranks on other nodes would be out of its sight, so nothing is started and it is said how to use such a server.
 */
import { hasSwitch, optionOf, readClientCommand } from './client-command.ts';
import { valueAt } from './explain-issue.ts';
import type { Path, Problem } from './problem.ts';

interface Sign {
  /** Under `flags:`, plain; or `command`. */
  readonly key: string;
  readonly says: string;
}

type Flags = ReadonlyMap<string, { readonly key: string; readonly value: unknown }>;

/** One problem a server, at the first sign, with the recipe once. */
export function checkNodes(file: unknown, server: Path): Problem[] {
  const at = (key: string) => valueAt(file, [...server, key]);
  const engine = at('engine');
  if ((engine !== 'sglang' && engine !== 'vllm') || at('attach') !== undefined) return [];
  const flags = readFlags(at('flags'));
  const signs = [...(engine === 'sglang' ? signsOfSglang(flags) : signsOfVllm(flags)), ...signsOfCommand(at('command'))];
  const [first, ...more] = signs;
  if (first === undefined) return [];
  const path = first.key === 'command' ? [...server, 'command'] : [...server, 'flags', first.key];
  const also =
    more.length === 0
      ? ''
      : ` (so does ${more.map(({ key, says }) => (key === 'command' ? `a command that ${says}` : `${key}, which ${says}`)).join(', and ')})`;
  return [
    { path, at: 'value', message: `${first.says}, which spreads the server over several nodes${also}; ${RECIPES[engine]}` },
  ];
}

const RECIPES = {
  sglang:
    'start it by hand, on each node the same command with its own rank:  python3 -m sglang.launch_server --model-path MODEL --tp 16 ' +
    '--nnodes 2 --node-rank 0 --dist-init-addr NODE0:20000 --host 0.0.0.0 --port 30000  (--node-rank 1 on the second); then write ' +
    'attach: http://NODE0:30000 in place of flags: and command:',
  vllm:
    'start it by hand, ray first (ray start --head on the first node, ray start --address NODE0:6379 on the others) and on the first node  ' +
    'vllm serve MODEL --tensor-parallel-size 8 --pipeline-parallel-size 2 --distributed-executor-backend ray --host 0.0.0.0 --port 8000 ; ' +
    'then write attach: http://NODE0:8000 in place of flags: and command:',
} as const;

function readFlags(flags: unknown): Flags {
  if (typeof flags !== 'object' || flags === null || Array.isArray(flags)) return new Map();
  const plain = (key: string) => key.replace(/^-+/, '').replaceAll('_', '-');
  return new Map(Object.entries(flags).map(([key, value]) => [plain(key), { key, value: value as unknown }]));
}

function signsOfSglang(flags: Flags): Sign[] {
  return [
    ...aboveOne(flags, 'nnodes'),
    ...aboveZero(flags, 'node-rank'),
    ...['dist-init-addr', 'nccl-init-addr'].flatMap((name) => elsewhere(flags, name)),
  ];
}

function signsOfVllm(flags: Flags): Sign[] {
  const size = numberOf(flags, ['data-parallel-size', 'dp']) ?? 1;
  const local = numberOf(flags, ['data-parallel-size-local', 'dpl']) ?? size;
  const written = flags.get('data-parallel-size-local') ?? flags.get('dpl');
  return [
    ...aboveOne(flags, 'nnodes'),
    ...aboveZero(flags, 'node-rank'),
    ...(written !== undefined && local < size ? [{ key: written.key, says: `is ${local} of ${size} data-parallel ranks` }] : []),
    ...['data-parallel-address', 'dpa', 'master-addr'].flatMap((name) => elsewhere(flags, name)),
    ...['data-parallel-rank', 'dpn', 'data-parallel-start-rank', 'dpr'].flatMap((name) => present(flags, name)),
    ...(flags.get('headless')?.value === true ? present(flags, 'headless') : []),
    ...['distributed-executor-backend', 'data-parallel-backend', 'dpb'].flatMap((name) => isRay(flags, name)),
  ];
}

function signsOfCommand(command: unknown): Sign[] {
  const client = typeof command === 'string' ? readClientCommand(command) : undefined;
  if (client?.kind !== 'step') return [];
  const sign = (says: string): Sign => ({ key: 'command', says });
  const nodes = optionOf(client, 'nodes')?.value;
  const tasks = ['ntasks', 'ntasks-per-node'].flatMap((name) => optionOf(client, name)?.value ?? []);
  return [
    ...(nodes !== undefined && !/^(?:1|1-1)$/.test(nodes) ? [sign(`has srun -N ${nodes}`)] : []),
    ...tasks.filter((count) => count !== '1').map((count) => sign(`has srun with ${count} tasks`)),
    ...(/[,[]/.test(optionOf(client, 'nodelist')?.value ?? '') ? [sign('has srun -w with several nodes')] : []),
    ...(hasSwitch(client, 'spread-job') ? [sign('has srun --spread-job')] : []),
  ];
}

function aboveOne(flags: Flags, name: string): Sign[] {
  return sign(flags, name, (value) => Number(value) > 1);
}

function aboveZero(flags: Flags, name: string): Sign[] {
  return sign(flags, name, (value) => Number(value) > 0);
}

function present(flags: Flags, name: string): Sign[] {
  return sign(flags, name, () => true);
}

function isRay(flags: Flags, name: string): Sign[] {
  return sign(flags, name, (value) => value === 'ray');
}

/** An address that is not this machine's loopback is where ranks of other nodes meet. */
function elsewhere(flags: Flags, name: string): Sign[] {
  return sign(
    flags,
    name,
    (value) => !/^(?:\w+:\/\/)?(?:127\.\d+\.\d+\.\d+|localhost|0\.0\.0\.0|\[?::1?\]?)(?::\d+)?$/.test(String(value)),
  );
}

function sign(flags: Flags, name: string, is: (value: unknown) => boolean): Sign[] {
  const flag = flags.get(name);
  if (flag === undefined || !is(flag.value)) return [];
  return [{ key: flag.key, says: flag.value === true ? 'is set' : `is ${String(flag.value)}` }];
}

function numberOf(flags: Flags, names: readonly string[]): number | undefined {
  const flag = names.map((name) => flags.get(name)).find((one) => one !== undefined);
  const value = Number(flag?.value);
  return flag !== undefined && Number.isInteger(value) ? value : undefined;
}
