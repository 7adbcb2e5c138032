/**
 * The run file as people write it: every key, its unit, its default. The schema in `schemas/run.schema.json`, the
 * nearest-key hints and the reader all come from here, so a key is described in one place.
 * Rules that need two keys at once are in `cross-check.ts`; sentences for what does not fit are in `explain-issue.ts`.
 */
import { z } from 'zod';
import {
  attachment,
  count,
  duration,
  elementType,
  envName,
  envValue,
  machinePath,
  name,
  secretName,
  shellLine,
  shellLines,
  sourcePath,
  sshMachine,
  text,
} from './field-kinds.ts';
import { MOST_IN_FLIGHT } from './run.ts';
import { sampling, samplingOfPartition } from './sampling-keys.ts';

/** A flag of SGLang or vLLM, spelled as the engine spells it: `tp: 8`, `enable-hierarchical-cache: true`. */
const engineFlag = z.union([z.string(), z.number(), z.boolean(), z.array(z.union([z.string(), z.number()]))], {
  error: 'must be what stands behind the flag: text, a number, true or false, or a list of these',
});

const embeddedFlags = z.object({
  sequences: z
    .int()
    .min(1)
    .max(256)
    .optional()
    .describe('Requests the engine works on at once, 1 to 256 (the most llama.cpp counts).'),
  context: z
    .int()
    .min(16)
    .max(1_048_576)
    .optional()
    .describe('Tokens of prompt and answer together that one sequence can hold, 16 to 1048576.'),
  'kv-type': z.enum(['f16', 'q8_0']).optional().describe('Type of an element of the KV cache: f16 (16 bits) or q8_0 (8.5 bits).'),
  threads: z
    .int()
    .min(1)
    .max(512)
    .optional()
    .describe('CPU threads for the engine, 1 to 512. Left out: the engine chooses by the cores there are.'),
});

/** Other keys than the embedded engine's are for SGLang and vLLM; `cross-check.ts` refuses them elsewhere. */
const flags = embeddedFlags.catchall(engineFlag);

const server = z.strictObject({
  engine: z
    .enum(['embedded', 'vllm', 'sglang', 'openai'])
    .describe(
      'embedded: the small engine that comes with Aerie. vllm, sglang: launched with flags, or already there (attach). ' +
        'openai: any endpoint with chat completions (needs attach); it gives text only, so its records are not exact.',
    ),
  machine: z
    .union(
      [
        sshMachine(),
        z.strictObject({
          ssh: sshMachine().describe('The machine: a name of your ssh config, or ssh://USER@HOST.'),
          outer: sshMachine()
            .optional()
            .describe('The host of which that machine is a container, as ssh://root@host: who holds GPU memory is asked there.'),
        }),
      ],
      { error: 'must be an ssh name, as ssh://root@gpu-box, or a map with ssh: and outer:' },
    )
    .optional()
    .describe(
      'Machine that the server runs on, reached by ssh: ssh://root@gpu-box, a name of your ssh config, or { ssh: …, outer: … }. Left out: this machine.',
    ),
  attach: attachment()
    .optional()
    .describe(
      'A server that is already there: http://HOST:PORT, ssh://BOX:PORT or docker://NAME. Aerie never stops it. Left out: Aerie launches the server.',
    ),
  'api-key': secretName()
    .optional()
    .describe('Environment variable that holds the key, as $NAME. The key itself never stands in a run file.'),
  flags: flags
    .optional()
    .describe(
      'Flags of the launch. embedded: sequences, context, kv-type, threads. sglang, vllm: spelled as the engine spells them, without the dashes; aerie plan reads them.',
    ),
  port: z
    .int()
    .min(0)
    .max(65_535)
    .optional()
    .describe('Port of a server that Aerie launches, 0 to 65535. Default 0: any free port.'),
  gpu: text().optional().describe('GPU of the machine, as "RTX PRO 6000" or H200: what aerie plan reckons with.'),
  'engine-version': text()
    .optional()
    .describe('Version of SGLang or vLLM on the machine, as 0.5.8: what aerie plan reckons with.'),
  setup: z
    .array(shellLines())
    .optional()
    .describe('Shell lines before the launch of SGLang or vLLM, as source ~/venv/bin/activate.'),
  env: z
    .record(envName(), envValue())
    .optional()
    .describe(
      'Environment of the launch: values, or $NAME for what NAME holds where aerie runs. Nothing of it stands on a command line or in a log.',
    ),
  command: shellLine()
    .optional()
    .describe(
      'What starts the engine, without its flags. Default: python3 -m sglang.launch_server, or vllm serve; model, host, port and flags are added.',
    ),
  workdir: machinePath()
    .optional()
    .describe('Folder that the launch runs in. Default: the folder of this file; behind ssh the home folder, and absolute.'),
  log: machinePath()
    .optional()
    .describe(
      'Where the log of the launch goes; logs of earlier launches keep the name with .1, .2 … Default: logs/NAME.log in the run folder; behind ssh below ~/.aerie, and absolute. With attach: the log of that server.',
    ),
  name: name().optional().describe('Name in logs and records. Default: the engine and its place in the list, as embedded-0.'),
});

const belowBits = ['below-16-bit', 'below-8-bit'] as const;

const limits = (what: string) =>
  z
    .strictObject({
      'kv-cache-bits': z.number().min(1).max(32).optional().describe('Bits per element of the KV cache.'),
      'weight-bits': z.number().min(1).max(32).optional().describe('Bits per element of most of the weights, scales counted.'),
      context: z.int().min(1).optional().describe('Tokens of prompt and answer together that one request can have.'),
      pool: z.int().min(1).optional().describe('Tokens that the KV pool holds.'),
      'running-requests': z.int().min(1).optional().describe('Requests that the engine works on at once.'),
      'memory-fraction': z.number().min(0).max(1).optional().describe('Static memory fraction, or GPU memory utilization.'),
      'free-gib': z.number().min(0).optional().describe('GiB left on each GPU after graph capture.'),
    })
    .describe(what);

const rule = z.strictObject({
  forbid: z
    .strictObject({
      'kv-cache': z
        .enum(belowBits)
        .optional()
        .describe('below-16-bit: no element of the KV cache may have fewer than 16 bits. below-8-bit: nor fewer than 8.'),
      weights: z
        .enum([...belowBits, 'requantised'])
        .optional()
        .describe(
          'below-16-bit, below-8-bit: bits per element of the weights. requantised: another format than the published one.',
        ),
    })
    .optional()
    .describe('What nobody may do, matched on what the server really does and never on how a flag is spelled.'),
  require: z
    .strictObject({
      'kv-cache': elementType().optional().describe('Type that the KV cache must have, under any of its names, as bf16.'),
      weights: z.literal('as-published').optional().describe('as-published: the weights are in the format of the checkpoint.'),
    })
    .optional()
    .describe('What must be so.'),
  min: limits('Figures that must be reached.').optional(),
  max: limits('Figures that must not be passed.').optional(),
  because: text().describe('The reason, for the person who meets the rule.'),
  by: text().describe('Who decided it.'),
});

const column = (what: string) => text().optional().describe(`Column with the ${what}; dots lead into a column.`);

const partition = z.strictObject({
  name: name().describe('Name of the partition, 1 to 64 of A-Z a-z 0-9 . _ -; its folder is named so.'),
  from: z
    .union([sourcePath(), z.array(sourcePath()).min(1)], {
      error: 'must be a path, or a list of paths (lines that begin with a dash)',
    })
    .describe(
      'Files with the prompts: a path relative to the run file, a pattern such as data/*.jsonl, hf://datasets/OWNER/NAME/FILE, or a list of these.',
    ),
  columns: z
    .strictObject({
      messages: column('list of messages'),
      turns: column('list of user turns'),
      prompt: column('one question'),
      instruction: column('instruction'),
      input: column('input that belongs to the instruction'),
      system: column('system message'),
      tools: column('tool definitions'),
    })
    .optional()
    .describe('Which column of the source holds what, as prompt: question; dots lead into a column. Left out: the usual names.'),
  budget: count('must be a whole number of tokens from 1 up, as 500000, 500k or 20M; leave it out for no budget')
    .optional()
    .describe('Generated tokens this partition may spend, as 20000000 or 20M. Left out: no budget.'),
  limit: count('must be a whole number of prompts from 1 up, as 20000 or 20k; leave it out for all')
    .optional()
    .describe('Most prompts to take from the file, as 20000 or 20k. Left out: all.'),
  turns: z
    .enum(['all', 'last'])
    .default('all')
    .describe(
      'Which user turns are answered. all: every one, in order. last: only the last, after the answers that the source has. Default all.',
    ),
  truncated: z
    .enum(['keep', 'drop', 'continue'])
    .default('keep')
    .describe(
      'What becomes of an answer cut at max-tokens. keep: a record, flagged. drop: no record of its conversation, counted. continue: further requests, each with max-tokens, go on where it stopped. Default keep.',
    ),
  continuations: z
    .int()
    .min(1)
    .max(1000) // with max-tokens 1024, a context of a million tokens
    .optional()
    .describe(
      'Most further requests for one answer where truncated is continue, 1 to 1000; one that is then still cut is kept, flagged. Default 8.',
    ),
  sampling: samplingOfPartition.optional().describe('Laid over the run’s sampling, for this partition.'),
});

export const runFile = z
  .strictObject({
    run: name().describe('Name of the run, 1 to 64 of A-Z a-z 0-9 . _ -; its folder is runs/NAME beside this file.'),
    model: text()
      .max(500) // longer than any path people type; stops a pasted document
      .describe(
        'default (a small model for the embedded engine), the path of a .gguf file, or a name on the hub as the server knows it.',
      ),
    servers: z
      .array(server)
      .min(1)
      .prefault([{ engine: 'embedded' }])
      .describe('The servers that answer. Default: one embedded server.'),
    policy: z.array(rule).default([]).describe('What nobody may do, and why. Default: no rules.'),
    sampling: sampling
      .prefault({})
      .describe('How tokens are chosen. Default: temperature 0.7, top-p 1, top-k 0, max-tokens 2048, seed 0.'),
    partitions: z.array(partition).min(1).describe('Named sources of prompts, each with its own budget.'),
    'attempt-timeout': duration()
      .optional()
      .describe('Most time one request may take, as 90s, 15m or 2h. Left out: worked out from what was asked.'),
    // Large models load for a quarter of an hour and more; a server that is healthy and slow must not be given up.
    patience: duration()
      .default('30m')
      .describe('How long a server may be away before the run stops, resumable, as 90s, 15m or 2h. Default 30m.'),
    'in-flight': z
      .union([z.int().min(1, { abort: true }).max(MOST_IN_FLIGHT, { abort: true }), z.literal('auto')], {
        error: `must be a whole number from 1 to ${MOST_IN_FLIGHT}, or auto`,
      })
      .optional()
      .describe(
        'Requests in flight over all servers, 1 to 4096, or auto: 1.1 × what the KV pools hold at the mean length of the answers so far. Default 8 where every server is embedded, else 64.',
      ),
    'price-per-hour': z
      .number()
      .positive()
      .max(100_000) // a thousand rented machines; more is a slip of the keyboard
      .optional()
      .describe('What the machines of the servers cost in an hour, in the currency of your choice: aerie plan prices with it.'),
  })
  .meta({
    title: 'Aerie run file',
    description: 'One generation run: which model, on which servers, from which prompts, how far.',
  });

export type RunFile = z.infer<typeof runFile>;
