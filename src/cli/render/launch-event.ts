/** One event of a launch as one line, or two where a person must act. Pure. */
import type { EventKind, Facts } from '../../base/events.ts';
import { formatCount, formatDuration } from '../../base/units.ts';

type LaunchKind = Extract<EventKind, `launch.${string}` | `verdict.${string}`>;

/** A verdict has told the ends that came by themselves, and `server stop` tells its own. */
const TOLD_ELSEWHERE = /^(?:(?:crashed|hung|stopped|absent): |stopped by a person$)/;

export function renderLaunch(kind: Exclude<LaunchKind, 'launch.recorded'>, subject: string, facts: Facts): string | undefined {
  const text = (key: string) => String(facts[key] ?? '');
  const launch = `${subject}: launch ${text('launch')}`;
  switch (kind) {
    case 'launch.preflight':
      return `${subject}: ${text('says')}${facts['remedy'] === undefined ? '' : `\n  ${text('remedy')}`}`;
    case 'launch.starting':
      return `${launch}  ${text('line')}`;
    case 'launch.started':
      return `${launch} started, pid ${text('pid')}, port ${text('port')}, log ${text('log')}`;
    case 'launch.adopted':
      return `${launch} still runs, pid ${text('pid')}, port ${text('port')}: it is used as it is`;
    case 'launch.phase':
      return `${subject}: ${text('says')}`;
    case 'launch.verified':
      return `${launch} ${describeVerified(facts)}`;
    case 'launch.changed':
      return `${launch} next, with ${text('changes')}: ${withoutChange(text('because'), text('changes'))}${describePredicted(facts)}`;
    case 'launch.compared':
      return `${subject}: ${text('says').split('\n').join('\n  ')}`;
    case 'launch.ended':
      return TOLD_ELSEWHERE.test(text('how')) ? undefined : `${launch} is ended, because ${text('how')}`;
    case 'launch.given-up':
      return `${subject}: given up after ${facts['launches'] === 1 ? 'one launch' : `${text('launches')} launches`}`;
    case 'launch.memory-held':
      return `${subject}: GPU memory is not free yet: ${text('says')}`;
    case 'launch.memory-free':
      return `${subject}: GPU memory is back at its baseline`;
    case 'verdict.given':
      return `${facts['attached'] === true ? `${subject}:` : launch} ${describeVerdict(facts)}`;
  }
}

/** Of a server that Aerie did not start. */
export function renderAttached(
  kind: 'server.log-found' | 'server.log-missing' | 'server.verified',
  subject: string,
  facts: Facts,
): string {
  const text = (key: string) => String(facts[key] ?? '');
  if (kind === 'server.verified') return `${subject}: ${describeVerified(facts)}`;
  if (kind === 'server.log-found') {
    const deleted = facts['isDeleted'] === true ? ', a file that was deleted' : '';
    return `${subject}: its log is ${text('log')}${deleted} (${formatCount(Number(facts['lines'] ?? 0))} lines)`;
  }
  const lines = [...text('costs').split('\n'), ...text('remedy').split('\n')].filter(Boolean);
  return [`${subject}: ${text('because')}`, ...lines.map((line) => `  ${line}`)].join('\n');
}

function describeVerified(facts: Facts): string {
  const parts = [
    `holds ${formatCount(Number(facts['poolTokens'] ?? 0))} tokens`,
    `KV cache ${String(facts['kvCacheDtype'])} (by ${String(facts['how'])})`,
  ];
  if (Number(facts['freeAfterGraphsGiB'] ?? 0) > 0) parts.push(`${Number(facts['freeAfterGraphsGiB']).toFixed(2)} GiB left`);
  if (facts['predictedTokens'] !== undefined) parts.push(`${formatCount(Number(facts['predictedTokens']))} were predicted`);
  return `verified: ${parts.join(', ')}`;
}

/** The reason names the change too, between the cause and its figures. */
function withoutChange(because: string, changes: string): string {
  return because.replace(`: ${changes};`, ';');
}

function describePredicted(facts: Facts): string {
  if (facts['poolTokens'] === undefined || String(facts['because']).includes(' tokens')) return '';
  const free = Number(facts['freeAfterGraphsGiB']).toFixed(2);
  return ` (predicted: ${formatCount(Number(facts['poolTokens']))} tokens, ${free} GiB left)`;
}

function describeVerdict(facts: Facts): string {
  const { cause, state } = facts;
  const isEnd = cause === 'none' && (state === 'stopped' || state === 'absent');
  if (cause === 'none' && !isEnd) return `is ${String(state)} again`;
  const lines = [isEnd ? describeEnd(facts) : describeIllness(facts)];
  for (const key of ['evidence', 'evidence2']) if (facts[key] !== undefined) lines.push(`  line ${shorten(String(facts[key]))}`);
  if (facts['signs'] !== undefined) lines.push(`  seen: ${String(facts['signs'])}`);
  if ((facts['remedy'] ?? '') !== '' && !isEnd) lines.push(`  ${String(facts['remedy'])}`);
  if (facts['attached'] === true) lines.push(`  ${sayWhose(state === 'degraded')}`);
  return lines.join('\n');
}

function describeIllness(facts: Facts): string {
  const phase = facts['phase'] === '' ? '' : ` in ${String(facts['phase'])}`;
  const title = `${String(facts['title'])} (${String(facts['cause'])}, ${String(facts['confidence'])})`;
  return `is ${String(facts['state'])}${phase}: ${title}${saySince(facts)}`;
}

function describeEnd(facts: Facts): string {
  const how = facts['state'] === 'absent' ? 'not there any more' : 'stopped';
  return `is ${how}${facts['note'] === undefined ? '' : `: ${String(facts['note'])}`}${saySince(facts)}`;
}

function saySince({ attached, stillForMs }: Facts): string {
  return attached === true && Number(stillForMs) > 0 ? `, for ${formatDuration(Number(stillForMs))} now` : '';
}

/** What Aerie did not start, a person starts again. */
function sayWhose(goesOn: boolean): string {
  const then = goesOn ? 'The run goes on.' : 'The run goes on by itself when it answers again.';
  return `Aerie did not start it, and neither stops it nor starts it again: that is yours. ${then}`;
}

/** A traceback's line can fill a screen; the log has all of it. */
function shorten(text: string): string {
  return text.length <= 240 ? text : `${text.slice(0, 239)}…`;
}
