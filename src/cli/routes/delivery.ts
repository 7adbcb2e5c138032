/** Commands that judge records and hand them over: check, export. Loads nothing but stricli. */
import { buildCommand } from '@stricli/core';
import type { CliContext } from '../cli-context.ts';
import type { CheckFlags, ExportFlags } from '../flags.ts';
import { json, onFindings, onRun } from './parameters.ts';

export const checkCommand = buildCommand<CheckFlags, [string], CliContext>({
  loader: async () => (await import('../commands/check.ts')).check,
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

export const exportCommand = buildCommand<ExportFlags, [string], CliContext>({
  loader: async () => (await import('../commands/export.ts')).exportRecords,
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
