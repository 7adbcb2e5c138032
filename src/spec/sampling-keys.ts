/**
 * The keys under `sampling:`, of the run (with defaults) and of a partition (only what is laid over the run's). One table
 * of kinds, so that a value that is wrong in one place is wrong in the other.
 */
import { z } from 'zod';

/** Engines search every token for each of them; OpenAI allows four, vLLM and SGLang any number. */
const MOST_STOPS = 64;
/** A share is written with a few digits; three thirds must not be more than 1. */
const ROUNDING = 1e-9;

const kinds = {
  temperature: z.number().min(0).max(2),
  'top-p': z.number().gt(0).max(1),
  'top-k': z.int().min(0).max(1_000_000),
  'max-tokens': z.int().min(1).max(1_048_576),
  // Engines take a signed 32-bit number.
  seed: z.int().min(0).max(2_147_483_647),
  thinking: z.boolean(),
  stop: z.array(z.string().min(1)).min(1).max(MOST_STOPS),
  'temperature-mixture': z
    .array(
      z.strictObject({
        temperature: z.number().min(0).max(2).describe('Temperature of this share of the prompts, 0 to 2.'),
        share: z.number().gt(0).max(1).describe('Share of the prompts, above 0 to 1.'),
      }),
    )
    .min(1)
    .refine((parts) => parts.reduce((sum, { share }) => sum + share, 0) <= 1 + ROUNDING, {
      error: 'has shares that add up to more than 1; what is left of 1 is asked with temperature',
    }),
  'chat-template-kwargs': z.record(z.string(), z.unknown()),
  'extra-body': z.record(z.string(), z.unknown()),
};

const words = {
  temperature: 'Temperature, 0 to 2; 0 always takes the likeliest token. Default 0.7.',
  'top-p': 'Share of the probability to sample from, above 0 to 1. Default 1: all of it.',
  'top-k': 'Sample from the k likeliest tokens. Default 0: from all.',
  'max-tokens': 'Most tokens one answer may have, 1 to 1048576. Default 2048.',
  seed: 'Seed of the run, 0 to 2147483647; each turn gets its own from it. Default 0.',
  thinking: 'true or false: sent as enable_thinking to the chat template. Left out: the template decides.',
  stop: 'Texts that end an answer, as ["\\n\\n"]; the text stops before them, the ids hold them. Default: none.',
  'temperature-mixture':
    'Shares of the prompts with a temperature of their own, as [{temperature: 0, share: 0.3}]; drawn from the prompt id, so the same in every run. The rest has temperature. Default: none.',
  'chat-template-kwargs': 'Sent as chat_template_kwargs with every request. Default: none.',
  'extra-body': 'More fields of the request body, spelled as the engine spells them. Default: none.',
};

export const sampling = z.strictObject({
  temperature: kinds.temperature.default(0.7).describe(words.temperature),
  'top-p': kinds['top-p'].default(1).describe(words['top-p']),
  'top-k': kinds['top-k'].default(0).describe(words['top-k']),
  'max-tokens': kinds['max-tokens'].default(2048).describe(words['max-tokens']),
  seed: kinds.seed.default(0).describe(words.seed),
  thinking: kinds.thinking.optional().describe(words.thinking),
  stop: kinds.stop.optional().describe(words.stop),
  'temperature-mixture': kinds['temperature-mixture'].optional().describe(words['temperature-mixture']),
  'chat-template-kwargs': kinds['chat-template-kwargs'].default({}).describe(words['chat-template-kwargs']),
  'extra-body': kinds['extra-body'].default({}).describe(words['extra-body']),
});

/** Each key as given, else the run's. Maps are replaced whole. */
const ours = (key: keyof typeof words) => `${words[key].replace(/ (Default|Left out)[^.]*\.$/, '')} Left out: as the run's.`;
export const samplingOfPartition = z.strictObject({
  temperature: kinds.temperature
    .optional()
    .describe(`${ours('temperature')} Without temperature-mixture beside it there is no mixture.`),
  'top-p': kinds['top-p'].optional().describe(ours('top-p')),
  'top-k': kinds['top-k'].optional().describe(ours('top-k')),
  'max-tokens': kinds['max-tokens'].optional().describe(ours('max-tokens')),
  seed: kinds.seed.optional().describe(ours('seed')),
  thinking: kinds.thinking.optional().describe(ours('thinking')),
  stop: kinds.stop.optional().describe(ours('stop')),
  'temperature-mixture': kinds['temperature-mixture'].optional().describe(ours('temperature-mixture')),
  'chat-template-kwargs': kinds['chat-template-kwargs'].optional().describe(ours('chat-template-kwargs')),
  'extra-body': kinds['extra-body'].optional().describe(ours('extra-body')),
});

export type WrittenSampling = z.infer<typeof sampling>;
export type WrittenOverride = z.infer<typeof samplingOfPartition>;
