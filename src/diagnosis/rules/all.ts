/** Every rule. Where two fit the same line equally well, the earlier one counts: the special before the general. */
import type { Rule } from '../rule.ts';
import { CLIENT_RULES } from './clients.ts';
import { COMMUNICATION_RULES } from './communication.ts';
import { ENDING_RULES, NONE, UNKNOWN } from './endings.ts';
import { FLAG_RULES } from './flags.ts';
import { GPU_RULES } from './gpu.ts';
import { HOST_RULES } from './host.ts';
import { LOAD_RULES } from './load.ts';
import { MODEL_RULES } from './model-files.ts';
import { ANY_OUT_OF_MEMORY, OUT_OF_MEMORY_RULES } from './out-of-memory.ts';
import { POOL_RULES } from './pool.ts';
import { START_MEMORY_RULES } from './start-memory.ts';
import { TOOLCHAIN_RULES } from './toolchain.ts';
import { WAITING_RULES } from './waiting.ts';

export const FAMILIES: readonly { readonly title: string; readonly rules: readonly Rule[] }[] = [
  { title: 'Memory at the start', rules: START_MEMORY_RULES },
  { title: 'GPU out of memory, by where', rules: [...OUT_OF_MEMORY_RULES, ANY_OUT_OF_MEMORY] },
  { title: 'The KV pool while serving', rules: POOL_RULES },
  { title: 'GPU, driver, kernels', rules: GPU_RULES },
  { title: 'Memory and disk of the host', rules: HOST_RULES },
  { title: 'Compilers and packages', rules: TOOLCHAIN_RULES },
  { title: 'Flags', rules: FLAG_RULES },
  { title: 'Model files', rules: MODEL_RULES },
  { title: 'Between ranks and nodes', rules: COMMUNICATION_RULES },
  { title: 'Containers and Slurm', rules: CLIENT_RULES },
  { title: 'Starts that wait', rules: WAITING_RULES },
  { title: 'Servers at work', rules: LOAD_RULES },
  { title: 'How servers end', rules: ENDING_RULES },
  { title: 'Neither', rules: [NONE, UNKNOWN] },
];

export const RULES: readonly Rule[] = FAMILIES.flatMap(({ rules }) => rules);

/** The rule of a code; of several with one code, the one that leads to the state asked for. */
export function ruleOf(code: string, state?: Rule['state']): Rule {
  const rules = RULES.filter((rule) => rule.code === code);
  return rules.find((rule) => rule.state === state) ?? rules[0] ?? UNKNOWN;
}
