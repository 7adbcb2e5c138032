/**
 * Logs of one server → what state it is in, why, and what to do. Pure: bytes go in by `LogReader`, `diagnose` decides.
 * Promises: the same account gives the same verdict; a healthy log is `none`; a cause that is not known is `unknown`.
 */
import type { Account, NamedAccount, Sighting } from './account.ts';
import { hypothesise } from './hypotheses.ts';
import { judge } from './judge.ts';
import type { JudgeOptions } from './judge-silence.ts';
import type { Judgement } from './judgement.ts';
import type { LogFacts } from './log-facts.ts';
import { mergeAccounts } from './merge-ranks.ts';
import type { Evidence, Remedy, State, Verdict } from './verdict.ts';

export interface DiagnoseOptions extends JudgeOptions {
  /** Asks the capacity model about a remedy: a sentence to add, or nothing. */
  readonly checkRemedy?: (remedy: Remedy, facts: LogFacts) => string | undefined;
}

/** The gravest first: of several servers in one log the one that needs a person speaks. */
const GRAVITY: Readonly<Record<State, number>> = { crashed: 0, hung: 1, degraded: 2, initializing: 3, serving: 4, ready: 5 };

/** Servers that stand in one log, such as the containers of docker compose. */
export function diagnoseServers(servers: readonly NamedAccount[], options: DiagnoseOptions = {}): Verdict {
  const verdicts = servers.map((server) => ({ server, verdict: diagnose([{ ...server, file: '' }], options) }));
  const [gravest] = [...verdicts].sort((a, b) => GRAVITY[a.verdict.state] - GRAVITY[b.verdict.state]);
  if (gravest === undefined || verdicts.length === 1) return gravest?.verdict ?? diagnose(servers, options);
  // Several that crashed may be nodes of one server: the first cause in time.
  const crashed = verdicts.filter(({ verdict }) => verdict.state === 'crashed').map(({ server }) => ({ ...server, file: '' }));
  const verdict = crashed.length > 1 ? diagnose(crashed, options) : gravest.verdict;
  const all = verdicts.map(
    ({ server, verdict: { state, cause } }) => `${server.file} ${state}${cause === 'none' ? '' : ` (${cause})`}`,
  );
  return {
    ...verdict,
    notes: [
      ...verdict.notes,
      `The log holds ${verdicts.length} containers: ${all.join(', ')}. This is about ${gravest.server.file}.`,
    ],
  };
}

const CLOCK = 'Silence was not judged: give --now (the time by the log’s own clock) to have it judged.';

export function diagnose(logs: readonly NamedAccount[], options: DiagnoseOptions = {}): Verdict {
  const merged = mergeAccounts(logs);
  const judgement = judge(merged.account, options);
  const { state, rule, confidence, phase } = judgement;
  const { facts, progress } = merged.account;
  return {
    state,
    phase,
    ...(state === 'initializing' && progress !== undefined ? { progress } : {}),
    cause: rule.code,
    title: rule.title,
    confidence,
    evidence: judgement.evidence.map((sighting) => evidenceOf(sighting, merged.fileOf)),
    remedy: remedyOf(judgement, facts, options.checkRemedy),
    restartSameFlagsHelps: canRestart(judgement),
    notes: notesOf(judgement, merged.account, options),
    hypotheses: hypothesise(merged.account, judgement, options),
    facts,
  };
}

function canRestart({ rule, phase, state }: Judgement): boolean | null {
  const isStart = state === 'crashed' && phase !== '' && phase !== 'serving';
  if (isStart && rule.restartAfterStartFailed !== undefined) return rule.restartAfterStartFailed;
  return rule.restartSameFlagsHelps;
}

function remedyOf({ rule, numbers }: Judgement, facts: LogFacts, check: DiagnoseOptions['checkRemedy']): Remedy {
  const remedy = rule.remedy({ facts, numbers });
  const added = check?.(remedy, facts);
  return added === undefined ? remedy : { ...remedy, text: `${remedy.text} ${added}` };
}

function evidenceOf(sighting: Sighting, fileOf: (sighting: Sighting) => string): Evidence {
  const file = fileOf(sighting);
  return { line: sighting.line, text: sighting.text.slice(0, 500), ...(file === '' ? {} : { file }) };
}

function notesOf({ notes, state }: Judgement, account: Account, { now, stillMs }: DiagnoseOptions): string[] {
  const all = [...notes];
  if (account.startsBefore > 0) all.push(`The log holds ${account.startsBefore + 1} starts; this is about the last one.`);
  if (account.shutdown !== undefined && state !== 'crashed' && stillMs === undefined)
    all.push(`Line ${account.shutdown.line}: the server was asked to end. Whether it did, only a probe can say.`);
  if (now === undefined && stillMs === undefined && state !== 'crashed' && state !== 'hung') all.push(CLOCK);
  if (now !== undefined && stillMs === undefined && account.lastAt === undefined)
    all.push('The log’s lines have no times, so its silence cannot be measured by them.');
  return all;
}
