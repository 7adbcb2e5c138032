/**
 * How a model writes its reasoning and its tool calls: by the parsers that its server was started with, else by the
 * model's own name. Pure; what is not known is said, never guessed.
 */
import type { ServerFacts } from './dialect.ts';

export interface Marks {
  readonly open: string;
  readonly close: string;
}

export type CallSyntax = 'hermes' | 'kimi' | 'deepseek-v3' | 'deepseek-v3.1';

/** undefined: the model has none of it, as far as is known. */
export interface AnswerFormat {
  readonly thinking: Marks | undefined;
  readonly calls: CallSyntax | undefined;
}

const THINK: Marks = { open: '<think>', close: '</think>' };
const KIMI_THINK: Marks = { open: '◁think▷', close: '◁/think▷' };

/** SGLang's names for what splits at `<think>`; the rules of the others (gpt-oss, mistral …) are not written here. */
const REASONING_PARSERS: Readonly<Record<string, Marks>> = {
  'deepseek-r1': THINK,
  'deepseek-v3': THINK,
  glm45: THINK,
  interns1: THINK,
  kimi: KIMI_THINK,
  kimi_k2: THINK,
  qwen3: THINK,
  'qwen3-thinking': THINK,
  step3: THINK,
};

const CALL_PARSERS: Readonly<Record<string, CallSyntax>> = {
  deepseekv3: 'deepseek-v3',
  deepseekv31: 'deepseek-v3.1',
  hermes: 'hermes',
  kimi_k2: 'kimi',
  qwen: 'hermes',
  qwen25: 'hermes',
};

/** The first that fits; names as people and hubs write them. */
const MODELS: readonly (readonly [RegExp, AnswerFormat])[] = [
  [/kimi-?vl|kimi-?k1/i, { thinking: KIMI_THINK, calls: undefined }],
  [/kimi-?k2/i, { thinking: THINK, calls: 'kimi' }],
  [/qwen3/i, { thinking: THINK, calls: 'hermes' }],
  [/qwq/i, { thinking: THINK, calls: 'hermes' }],
  [/qwen2\.?5|hermes/i, { thinking: undefined, calls: 'hermes' }],
  [/deepseek-?r1/i, { thinking: THINK, calls: 'deepseek-v3' }],
  [/deepseek-?v3\.1/i, { thinking: THINK, calls: 'deepseek-v3.1' }],
  [/deepseek-?v3(?!\.\d)/i, { thinking: undefined, calls: 'deepseek-v3' }],
];

/** A sentence where the server splits by a rule that is not known here. */
export function answerFormatOf({
  model,
  reasoningParser,
  toolCallParser,
}: Pick<ServerFacts, 'model' | 'reasoningParser' | 'toolCallParser'>): AnswerFormat | string {
  const named = MODELS.find(([name]) => name.test(model))?.[1];
  const thinking = reasoningParser === '' ? named?.thinking : ruleOf(REASONING_PARSERS, reasoningParser);
  if (reasoningParser !== '' && thinking === undefined)
    return `the rule of its --reasoning-parser ${reasoningParser} is not known here`;
  const calls = toolCallParser === '' ? named?.calls : ruleOf(CALL_PARSERS, toolCallParser);
  return { thinking, calls };
}

function ruleOf<T>(rules: Readonly<Record<string, T>>, name: string): T | undefined {
  return Object.hasOwn(rules, name) ? rules[name] : undefined;
}
