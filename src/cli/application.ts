/** The table of commands. Loads nothing but stricli, so that `aerie --help` is fast; a test holds it to that. */
import { buildApplication, buildCommand, buildRouteMap, type FlagParametersForType } from '@stricli/core';
import { AERIE_VERSION } from '../base/version.ts';
import type { CliContext } from './cli-context.ts';
import type { CheckFlags, CommonFlags, DiagnoseFlags, ExportFlags, InitFlags, PlanFlags, RunFlags } from './flags.ts';

const json: FlagParametersForType<CommonFlags, CliContext> = {
  json: { kind: 'boolean', brief: 'Print one JSON document on stdout', default: false },
};

const RUN = { parse: String, brief: 'A run file, or the folder runs/NAME beside it', placeholder: 'RUN' } as const;
const onRun = { kind: 'tuple', parameters: [RUN] } as const;

function parseTokens(text: string): number {
  if (!/^[1-9][0-9]{0,8}$/.test(text)) throw new SyntaxError(`'${text}' is not a number of tokens, like 8192`);
  return Number(text);
}

/** What findings depend on, for check and for what leaves records out or makes them anew by them. */
const onFindings = {
  maxLength: {
    kind: 'parsed',
    parse: parseTokens,
    optional: true,
    brief: 'Tokens at which the trainer cuts rows; default 8192',
    placeholder: 'N',
  },
  benchmarks: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Prompts that must not be among the run’s: JSON lines, or text with one on each line',
    placeholder: 'FILE',
  },
} as const;

const runCommand = buildCommand<RunFlags, [string], CliContext>({
  loader: async () => (await import('./commands/run.ts')).run,
  parameters: {
    flags: {
      ...json,
      retryFailed: { kind: 'boolean', default: false, brief: 'Ask prompts again that were set aside or dropped' },
      redo: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief:
          'Ask finished prompts anew: findings of aerie check, or ids, with commas between; a record stays until its new one is there',
        placeholder: 'FINDING|IDS',
      },
      ...onFindings,
      amend: {
        kind: 'boolean',
        default: false,
        brief: 'Record what the run file has otherwise than the run began, and go on in the new way',
      },
      strict: { kind: 'boolean', default: false, brief: 'Stop at the first input row that is refused, with its line and reason' },
    },
    positional: onRun,
  },
  docs: {
    brief: 'Generate until every partition is done; the same command resumes',
    fullDescription:
      'Generates answers for every prompt of the run file and writes exact records. Ctrl-C finishes what is in flight; ' +
      'a second one gives it up. After any stop, even kill -9, the same command resumes.\n\nExample: aerie run run.yaml',
  },
});

const previewCommand = buildCommand<CommonFlags, [string], CliContext>({
  loader: async () => (await import('./commands/preview.ts')).preview,
  parameters: { flags: json, positional: onRun },
  docs: {
    brief: 'Make 10 records to look at, and say whether records will be exact',
    fullDescription:
      'Asks the run’s servers for at most 10 records, shows them, and keeps nothing.\n\nExample: aerie preview run.yaml',
  },
});

const statusCommand = buildCommand<CommonFlags, [string], CliContext>({
  loader: async () => (await import('./commands/status.ts')).status,
  parameters: { flags: json, positional: onRun },
  docs: {
    brief: 'What is done, set aside and refused, also while a run is working',
    fullDescription: 'Reads only.\n\nExample: aerie status runs/quickstart',
  },
});

const checkCommand = buildCommand<CheckFlags, [string], CliContext>({
  loader: async () => (await import('./commands/check.ts')).check,
  parameters: {
    flags: {
      ...json,
      ...onFindings,
    },
    positional: onRun,
  },
  docs: {
    brief: 'The acceptance test of a run’s records; exit code 1 when a trainer would trip',
    fullDescription:
      'Looks at every record. Errors exit 1, warnings do not; docs/findings.md has a line for each.\n\nExample: aerie check run.yaml',
  },
});

const exportCommand = buildCommand<ExportFlags, [string], CliContext>({
  loader: async () => (await import('./commands/export.ts')).exportRecords,
  parameters: {
    flags: {
      ...json,
      for: {
        kind: 'enum',
        values: ['specforge', 'speculators', 'modelopt', 'automodel', 'eagle', 'parquet'],
        brief: 'The trainer that will read it',
      },
      to: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Folder to write; default export/TRAINER in the run folder',
        placeholder: 'FOLDER',
      },
      partition: {
        kind: 'parsed',
        parse: String,
        variadic: true,
        optional: true,
        brief: 'Only this partition; may be given again',
        placeholder: 'NAME',
      },
      without: {
        kind: 'parsed',
        parse: String,
        variadic: ',',
        optional: true,
        brief: 'Leave out records with these findings of check',
        placeholder: 'FINDING',
      },
      ...onFindings,
      heldOut: {
        kind: 'parsed',
        parse: Number,
        optional: true,
        brief: 'Share of the prompts for held-out/, the rest in train/',
        placeholder: 'SHARE',
      },
      extendMask: { kind: 'boolean', default: false, brief: 'Supervise the token before each answer too; specforge only' },
      counts: { kind: 'boolean', default: false, brief: 'Count the tokens the model wrote, in FOLDER.counts/' },
      draftVocab: {
        kind: 'parsed',
        parse: Number,
        optional: true,
        brief: 'Also write d2t and t2d for a draft vocabulary of this size',
        placeholder: 'N',
      },
      targetVocab: {
        kind: 'parsed',
        parse: Number,
        optional: true,
        brief: 'vocab_size of the model; default: what the server said',
        placeholder: 'N',
      },
    },
    positional: onRun,
  },
  docs: {
    brief: 'Write the records as files that a trainer reads',
    fullDescription:
      'The folder is whole or absent, and holds nothing but data. docs/exports.md says how to point each trainer at it.\n\n' +
      'Example: aerie export run.yaml --for specforge --held-out 0.02 --draft-vocab 32000',
  },
});

const initCommand = buildCommand<InitFlags, [string?], CliContext>({
  loader: async () => (await import('./commands/init.ts')).init,
  parameters: {
    flags: {
      ...json,
      from: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'File with the prompts: .jsonl, .json, .csv (each also .gz), .parquet',
        placeholder: 'FILE',
      },
      run: { kind: 'parsed', parse: String, optional: true, brief: 'Name of the run', placeholder: 'NAME' },
      engine: {
        kind: 'enum',
        values: ['vllm', 'sglang', 'openai'],
        optional: true,
        brief: 'Kind of a server that is already there; default with --attach: vllm',
      },
      attach: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'URL of that server; default http://127.0.0.1, port 8000 of vllm or 30000 of sglang',
        placeholder: 'URL',
      },
      model: {
        kind: 'parsed',
        parse: String,
        optional: true,
        brief: 'Model as the server knows it; default: a small one',
        placeholder: 'NAME',
      },
      force: { kind: 'boolean', default: false, brief: 'Replace a run file that is already there' },
    },
    positional: {
      kind: 'tuple',
      parameters: [{ parse: String, brief: 'Run file to write; default run.yaml', placeholder: 'FILE', optional: true }],
    },
  },
  docs: {
    brief: 'Write a commented run file',
    fullDescription: 'Asks what it needs on a terminal; elsewhere give flags.\n\nExample: aerie init --from prompts.jsonl',
  },
});

const text = (brief: string, placeholder: string) =>
  ({ kind: 'parsed', parse: String, optional: true, brief, placeholder }) as const;
const number = (brief: string) => ({ kind: 'parsed', parse: parsePositive, optional: true, brief, placeholder: 'N' }) as const;

function parsePositive(written: string): number {
  const value = Number(written);
  if (!(value > 0 && Number.isFinite(value))) throw new SyntaxError(`'${written}' is not a number above 0`);
  return value;
}

const planCommand = buildCommand<PlanFlags, string[], CliContext>({
  loader: async () => (await import('./commands/plan.ts')).plan,
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
      inFlight: number('Requests that the client keeps in flight; left out: as many as the server takes'),
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

const doctorCommand = buildCommand<CommonFlags, [string?], CliContext>({
  loader: async () => (await import('./commands/doctor.ts')).doctor,
  parameters: {
    flags: json,
    positional: {
      kind: 'tuple',
      parameters: [
        {
          parse: String,
          brief: 'A folder, run file or run folder; left out: this folder',
          placeholder: 'FOLDER|RUN',
          optional: true,
        },
      ],
    },
  },
  docs: {
    brief: 'Measure this machine and the disk of the run folder; exit code 1 when something fails',
    fullDescription:
      'Node, memory, open files, file system, space, fsync, locking, the embedded engine, models, pip. Keeps nothing.\n\nExample: aerie doctor run.yaml',
  },
});

const diagnoseCommand = buildCommand<DiagnoseFlags, string[], CliContext>({
  loader: async () => (await import('./commands/diagnose.ts')).diagnose,
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

const explainCommand = buildCommand<CommonFlags, [string?], CliContext>({
  loader: async () => (await import('./commands/explain.ts')).explain,
  parameters: {
    flags: json,
    positional: {
      kind: 'tuple',
      parameters: [{ parse: String, brief: 'A code from a message; left out: all of them', placeholder: 'CODE', optional: true }],
    },
  },
  docs: {
    brief: 'What a code of a message means, where to look, what to do',
    fullDescription:
      'Knows the codes of errors, of the findings of check, and of refused rows.\n\nExample: aerie explain disk.full',
  },
});

const commands = {
  run: runCommand,
  preview: previewCommand,
  status: statusCommand,
  check: checkCommand,
  export: exportCommand,
  init: initCommand,
  plan: planCommand,
  doctor: doctorCommand,
  diagnose: diagnoseCommand,
  explain: explainCommand,
};

export function isCommand(name: string): boolean {
  return Object.hasOwn(commands, name);
}

const routes = buildRouteMap({
  routes: commands,
  docs: {
    brief: 'Training data for EAGLE-3 drafters: prompts in, exact records out',
    fullDescription:
      'Training data for EAGLE-3 drafters: prompts in, exact records out, safe under kill -9.\n' +
      'Exit codes: 0 yes · 1 no · 2 usage or file · 3 environment · 4 engine · 5 stopped early, resumable · 70 bug · 130/143 interrupted.',
  },
});

export const application = buildApplication(routes, {
  name: 'aerie',
  versionInfo: { currentVersion: AERIE_VERSION },
  scanner: { caseStyle: 'allow-kebab-for-camel', allowArgumentEscapeSequence: true },
});
