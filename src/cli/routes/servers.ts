/** Commands about servers: plan a launch, diagnose a log. Loads nothing but stricli. */
import { buildCommand } from '@stricli/core';
import type { CliContext } from '../cli-context.ts';
import type { DiagnoseFlags, PlanFlags, ProbeFlags } from '../flags.ts';
import { json, number, text } from './parameters.ts';

export const planCommand = buildCommand<PlanFlags, string[], CliContext>({
  loader: async () => (await import('../commands/plan.ts')).plan,
  parameters: {
    flags: {
      ...json,
      engine: { kind: 'enum', values: ['sglang', 'vllm'], optional: true, brief: 'The engine, where no run file says it' },
      engineVersion: text('Its version, as 0.5.8; left out: the newest known is assumed', 'VERSION'),
      model: text('Name on the hub, or a folder with its config.json', 'MODEL'),
      gpu: text('Kind of GPU, as "RTX PRO 6000" or H200', 'GPU'),
      gpuMemory: number('MiB of one GPU as nvidia-smi prints it, for a card that is not known'),
      facts: text('What a launch measured, as \'{"weightsGiBPerGpu":72.33}\'', 'JSON'),
      log: text('Log of a launch of this model on these GPUs: measured instead of guessed', 'FILE'),
      calibrate: text('Log of a server at work, or points as JSON: step times come from it', 'FILE|JSON'),
      sweep: {
        kind: 'parsed',
        parse: String,
        variadic: true,
        optional: true,
        brief: 'Compare launches: FLAG=FIRST..LAST or FLAG=A,B; may be given again',
        placeholder: 'SWEEP',
      },
      workload: text('A run whose answers say how long answers are', 'RUN'),
      lengths: text('Length of answers, as lognormal:mean=4000,sigma=0.8', 'LENGTHS'),
      promptLengths: text('Length of prompts, in the same way', 'LENGTHS'),
      requests: number('Requests of the whole run; default 10000, or as many as the workload has prompts'),
      maxTokens: number('max-tokens of the requests; default that of the run file, else 8192'),
      inFlight: number(
        'Requests that the client keeps in flight; left out: those of the run file, else as many as the server takes',
      ),
      pricePerHour: number('What the machine costs in an hour'),
      plot: text('Also draw the sweep, as SVG', 'FILE.svg'),
    },
    positional: {
      kind: 'array',
      parameter: {
        parse: String,
        brief: 'A run file; after --, flags of the engine as it spells them',
        placeholder: 'RUN|FLAGS',
      },
    },
  },
  docs: {
    brief: 'What a launch will hold, whether it lives, how fast it is; exit code 1 when it does not fit',
    fullDescription:
      'Calculates; starts nothing.\n\nExample: aerie plan run.yaml\n' +
      'Example: aerie plan --engine sglang --model moonshotai/Kimi-K2.5 --gpu "RTX PRO 6000" -- --tp 8 --mem-fraction-static 0.88',
  },
});

export const diagnoseCommand = buildCommand<DiagnoseFlags, string[], CliContext>({
  loader: async () => (await import('../commands/diagnose.ts')).diagnose,
  parameters: {
    flags: {
      ...json,
      now: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'The time by the log’s own clock, to judge silence; "now" takes this machine’s',
        placeholder: 'TIME',
      },
    },
    positional: {
      kind: 'array',
      parameter: {
        parse: String,
        brief: 'A server’s log, plain or gzip; - reads a pipe; several are its ranks',
        placeholder: 'LOG',
      },
      minimum: 1,
    },
  },
  docs: {
    brief: 'What state a server is in by its log, why, and what to do; exit code 1 when it is not well',
    fullDescription:
      'Reads the whole log; asks no server. docs/diagnosis.md has a page for each cause.\n\nExample: aerie diagnose server.log --now now',
  },
});

export const probeCommand = buildCommand<ProbeFlags, [string?], CliContext>({
  loader: async () => (await import('../commands/probe.ts')).probe,
  parameters: {
    flags: {
      ...json,
      server: text('One server of the run file; left out: all', 'NAME'),
      url: text('Address of a server, as http://127.0.0.1:30000', 'URL'),
      log: text('Its log; left out: where its process writes', 'FILE'),
      ssh: text('The machine that --url and --log are of; left out: this one', 'NAME'),
      keyEnv: text('Environment variable that holds the key of a locked server', 'NAME'),
    },
    positional: {
      kind: 'tuple',
      parameters: [
        { parse: String, optional: true, brief: 'A run file, a run folder, or an ssh name', placeholder: 'RUN|MACHINE' },
      ],
    },
  },
  docs: {
    brief: 'One look at servers: state, capacity, activity, rules; exit code 0 only when all are ready and every rule is kept',
    fullDescription:
      'Starts, stops and changes nothing. Tells what it knows within 3 s and ends by 25 s. docs/probe.md\n\n' +
      'Example: aerie probe run.yaml\nExample: aerie probe gpu-box\nExample: aerie probe --url http://127.0.0.1:30000 --log server.log',
  },
});
