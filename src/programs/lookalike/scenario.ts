/**
 * The scenario: how long answers take, how long they are, and what goes wrong when. `docs/lookalike.md` is its page.
 *
 * Parsed at the border by these schemas and trusted inside; an unknown key is an error, because a fault that was
 * misspelt would let a test pass that tested nothing.
 */
import { readFileSync } from 'node:fs';
import * as z from 'zod';
import { AerieError } from '../../base/errors.ts';
import { LAUNCH_KEYS, phaseName } from './launch/machine-scenario.ts';

const ms = z.number().nonnegative();
const count = z.int().positive();

const latency = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('fixed'), ms }),
  z.strictObject({ kind: z.literal('uniform'), minMs: ms, maxMs: ms }),
  z.strictObject({
    kind: z.literal('lognormal'),
    ms: z.number().positive(),
    sigma: z.number().nonnegative(),
    maxMs: ms.optional(),
  }),
  z.strictObject({ kind: z.literal('per-token'), ms: ms.default(0), msPerToken: ms }),
]);

const answerTokens = z.discriminatedUnion('kind', [
  z.strictObject({ kind: z.literal('fixed'), tokens: count }),
  z.strictObject({ kind: z.literal('uniform'), min: count, max: count }),
  z.strictObject({ kind: z.literal('lognormal'), mean: count, sigma: z.number().nonnegative(), max: count.optional() }),
]);

/** All that are given must hold. None: always. Requests are counted from 1 in each life of the program. */
const when = z.strictObject({
  request: count.optional(),
  everyNth: count.optional(),
  fromRequest: count.optional(),
  toRequest: count.optional(),
  afterMs: ms.optional(),
  untilMs: ms.optional(),
  contains: z.string().min(1).optional(),
  lastContains: z.string().min(1).optional(),
  /** Of a start, for a launcher (`--as`); `afterMs` is then since the phase began. */
  phase: phaseName.optional(),
});

const always = { when: when.default({}), times: count.optional() };
/** Health has no request of its own: these conditions cannot be asked of it. */
const whenHealth = when.omit({ everyNth: true, contains: true, lastContains: true, phase: true }).default({});
/** Strikes in one life alone: the one that finds no such file, and makes it. */
const once = { once: z.string().min(1).optional() };

const anyFault = z.discriminatedUnion('do', [
  z.strictObject({
    ...always,
    do: z.literal('status'),
    status: z.int().min(400).max(599),
    retryAfterSeconds: z.number().nonnegative().optional(),
    body: z.union([z.string(), z.record(z.string(), z.unknown())]).optional(),
    ms: ms.default(0),
  }),
  z.strictObject({ ...always, ...once, do: z.literal('hang') }),
  z.strictObject({ ...always, ...once, do: z.literal('die'), ms: ms.default(0), exitCode: z.int().min(0).max(255).optional() }),
  z.strictObject({ ...always, do: z.literal('reset'), ms: ms.default(0) }),
  z.strictObject({ ...always, ...once, do: z.literal('slow'), ms }),
  z.strictObject({ ...always, do: z.literal('cut') }),
  z.strictObject({ ...always, do: z.literal('garbage') }),
  z.strictObject({ ...always, do: z.literal('wrong-count') }),
  z.strictObject({ ...always, do: z.literal('bad-ids'), id: z.int().optional() }),
  z.strictObject({
    ...always,
    do: z.literal('empty'),
    form: z.enum(['no-tokens', 'only-stop', 'no-choices']).default('no-tokens'),
  }),
  /** An answer that is well-formed and worth nothing: a loop, a refusal, whatever the text is. */
  z.strictObject({ ...always, do: z.literal('say'), text: z.string() }),
  z.strictObject({ ...always, do: z.literal('health-503'), when: whenHealth }),
  z.strictObject({ ...always, do: z.literal('health-lies') }),
  /** Of a served launch (`--as`): no step any more, behind an open port; `/health` as the real one has it, or 200. */
  z.strictObject({ ...always, do: z.literal('scheduler-hangs'), health: z.enum(['real', 'lies']).default('real') }),
  /** Its schedulers' processes end; the front end goes on, as before 0.5.10, or sees it and ends too. */
  z.strictObject({ ...always, do: z.literal('schedulers-die') }),
  /** Of a start: the GPU has no room for an allocation of that phase; an exception of rank 0 with that text. */
  z.strictObject({ ...always, ...once, do: z.literal('oom') }),
  z.strictObject({ ...always, ...once, do: z.literal('fail'), text: z.string().min(1) }),
]);

const OF_A_START = new Set(['die', 'hang', 'slow', 'oom', 'fail']);
const ONLY_OF_A_START = new Set(['oom', 'fail']);

export const faultSchema = anyFault.superRefine((fault, context) => {
  const isOfStart = 'phase' in fault.when && fault.when.phase !== undefined;
  const complain = (message: string) => context.addIssue({ code: 'custom', path: ['when', 'phase'], message });
  if (isOfStart && !OF_A_START.has(fault.do)) complain(`"${fault.do}" is no fault of a start`);
  if (!isOfStart && ONLY_OF_A_START.has(fault.do)) complain(`"${fault.do}" needs a phase`);
  if (!isOfStart && 'once' in fault && fault.once !== undefined) complain('"once" is for faults of a start: give a phase');
});

const scenarioSchema = z.strictObject({
  latency: latency.default({ kind: 'fixed', ms: 0 }),
  /** The default is short: most tests count answers and do not read them. */
  answerTokens: answerTokens.default({ kind: 'uniform', min: 16, max: 64 }),
  faults: z.array(faultSchema).default([]),
  /** Laid over the reply of `/server_info`: what the engine says about itself, e.g. `{"kv_cache_dtype": "fp8_e4m3"}`. */
  serverInfo: z.record(z.string(), z.unknown()).default({}),
  /** The version it says it is, everywhere it says one. */
  version: z.string().default('0.11.0-lookalike'), // the vLLM whose shapes are followed
  /** Ids in a chat: always, where `return_token_ids` asks for them, as SGLang gives them beside log-probabilities where asked for, or none. */
  ids: z.enum(['always', 'asked', 'meta-info', 'none']).default('always'),
  /** It has a reasoning parser: what stands before `</think>` is reasoning_content of a chat. */
  splitsReasoning: z.boolean().default(false),
  /** Whose words and bounds a chat is refused by that is longer than the context. */
  refusals: z.enum(['vllm', 'vllm-older', 'vllm-newer', 'sglang', 'openai']).default('vllm'),
  /** `/tokenize` takes messages, as vLLM's does; SGLang's takes text only. */
  countsMessages: z.boolean().default(true),
  ...LAUNCH_KEYS,
});

export type Latency = z.infer<typeof latency>;
export type AnswerTokens = z.infer<typeof answerTokens>;
export type Fault = z.infer<typeof faultSchema>;
export type When = z.infer<typeof when>;
export type Scenario = z.infer<typeof scenarioSchema>;

/**
 * '' = no file: answers at once, no faults. `habits`: what a version of an engine does where the file does not say otherwise.
 * Throws `usage.flag` naming every mistake.
 */
export function readScenario(path: string, habits: Partial<Scenario> = {}): Scenario {
  if (path === '') return scenarioSchema.parse(habits);
  let value: unknown;
  try {
    value = JSON.parse(readFileSync(path, 'utf8'));
  } catch (thrown) {
    throw new AerieError(
      'usage.flag',
      `The scenario ${path} cannot be read as JSON.`,
      {
        because: thrown instanceof Error ? thrown.message : String(thrown),
        remedy: 'give --scenario a JSON file; docs/lookalike.md shows one',
      },
      thrown,
    );
  }
  const parsed = scenarioSchema.safeParse(withHabits(habits, value));
  if (parsed.success) return parsed.data;
  throw new AerieError('usage.flag', `The scenario ${path} has ${parsed.error.issues.length} mistakes.`, {
    evidence: listMistakes(parsed.error),
    remedy: 'correct the keys above; docs/lookalike.md lists all of them',
  });
}

function withHabits(habits: Partial<Scenario>, value: unknown): unknown {
  const isMapping = typeof value === 'object' && value !== null && !Array.isArray(value);
  return isMapping ? { ...habits, ...(value as object) } : value;
}

export function listMistakes(error: z.ZodError): string[] {
  return error.issues.map((issue) => `${issue.path.join('.') || '(top)'}: ${issue.message}`);
}
