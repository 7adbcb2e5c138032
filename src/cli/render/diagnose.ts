/** The answer of `aerie diagnose`: the state, why, the lines that say so, and what to type next. Pure but for colour. */
import type { DiagnoseReport } from '../../app/diagnose.ts';
import { formatCount } from '../../base/units.ts';
import { stdoutColour as pc } from './colour.ts';

const COLOUR = {
  initializing: pc.yellow,
  ready: pc.green,
  serving: pc.green,
  degraded: pc.yellow,
  hung: pc.red,
  crashed: pc.red,
} as const;
const WIDTH = 10;
/** A line of evidence longer than two lines of a terminal is cut; `--json` has 500 characters of it. */
const EVIDENCE_SHOWN = 220;

const ASKED = { slow: 'slow?', hung: 'hung?', 'silently dead': 'dead?', 'ready but mute': 'mute?' } as const;
const AGAIN = { true: 'can work on a second try', false: 'will end the same way', null: 'may or may not work again' } as const;

export function renderDiagnosis(report: DiagnoseReport): string {
  const { state, cause, remedy, restartSameFlagsHelps, notes } = report;
  const facts = factsOf(report);
  return [
    field('state', `${COLOUR[state](state)}${phaseOf(report)}`),
    field('cause', causeOf(report)),
    ...report.evidence.map(renderEvidence),
    '',
    field('do', remedy.text),
    ...(remedy.flag === '' ? [] : [field('', pc.bold(`${remedy.flag} ${remedy.value}`.trimEnd()))]),
    ...(isUnhealthy(report) ? [field('again', `the same flags ${AGAIN[`${restartSameFlagsHelps}`]}`)] : []),
    ...(facts.length === 0 ? [] : ['', field('facts', facts.join(', '))]),
    ...report.hypotheses.filter((one) => one.for.length > 0).map((one) => field(ASKED[one.name], weigh(one.for, one.against))),
    ...notes.map((note) => field('note', note)),
    ...(cause === 'none' ? [] : [field('more', `docs/diagnosis/${cause}.md`)]),
  ].join('\n');
}

function causeOf({ cause, title, confidence }: DiagnoseReport): string {
  return cause === 'none' ? 'none: nothing is wrong' : `${cause}: ${title} (confidence ${confidence})`;
}

function renderEvidence({ line, text, file }: DiagnoseReport['evidence'][number]): string {
  return field('', `${pc.dim(`${file === undefined ? '' : `${file} `}line ${line}`)}  ${text.trim().slice(0, EVIDENCE_SHOWN)}`);
}

export function isUnhealthy({ state, cause }: DiagnoseReport): boolean {
  return state === 'crashed' || state === 'hung' || state === 'degraded' || cause === 'unknown';
}

function field(name: string, text: string): string {
  return `${name.padEnd(WIDTH)}${text}`;
}

function phaseOf({ phase, progress }: DiagnoseReport): string {
  if (phase === '' || phase === 'serving') return '';
  return `, in ${phase}${progress === undefined ? '' : ` (${progress.done} of ${progress.of})`}`;
}

function weigh(reasons: readonly string[], against: readonly string[]): string {
  return against.length === 0 ? reasons.join('; ') : `${reasons.join('; ')}; against it: ${against.join('; ')}`;
}

function factsOf({ facts }: DiagnoseReport): string[] {
  const gib = (name: string, value: number | undefined) => (value === undefined ? [] : [`${name} ${value} GiB`]);
  const last = facts.samples.at(-1);
  return [
    ...(facts.engine === undefined ? [] : [`${facts.engine}${facts.version === undefined ? '' : ` ${facts.version}`}`]),
    ...(facts.poolTokens === undefined ? [] : [`pool ${formatCount(facts.poolTokens)} tokens`]),
    ...(facts.kvCacheDtype === undefined ? [] : [`KV ${facts.kvCacheDtype}`]),
    ...gib('weights', facts.weightsGiBPerGpu),
    ...gib('free before load', facts.freeBeforeLoadGiB),
    ...gib('after load', facts.freeAfterLoadGiB),
    ...gib('after pool', facts.freeAfterPoolGiB),
    ...gib('after graphs', facts.freeAfterGraphsGiB),
    ...gib('graphs', facts.graphsGiB),
    ...(last === undefined ? [] : [`last reading ${last.running} running, ${last.queued} queued, ${last.generated} tok/s`]),
  ];
}

/** The document of `--json`: these keys and no others. */
export function diagnoseData(report: DiagnoseReport): unknown {
  const {
    state,
    phase,
    progress,
    cause,
    title,
    confidence,
    evidence,
    remedy,
    restartSameFlagsHelps,
    notes,
    hypotheses,
    facts,
    logs,
    bytes,
  } = report;
  return {
    state,
    phase: phase === '' ? null : phase,
    ...(progress === undefined ? {} : { progress }),
    ...{ cause, title, confidence, evidence, remedy, restartSameFlagsHelps, notes, hypotheses, facts, logs, bytes },
  };
}
