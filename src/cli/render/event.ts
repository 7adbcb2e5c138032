/** One event as one line; undefined for those that only the log needs. */
import type { Event, Facts } from '../../base/events.ts';
import { formatBytes, formatCount, formatDuration } from '../../base/units.ts';
import { countOf } from './count-of.ts';
import { renderAttached, renderLaunch } from './launch-event.ts';

export function renderEvent({ kind, subject, facts }: Event): string | undefined {
  const count = (key: string) => formatCount(Number(facts[key] ?? 0));
  const of = (key: string, thing: string) => countOf(Number(facts[key] ?? 0), thing);
  switch (kind) {
    case 'run.started':
      return `run ${subject} in ${String(facts['folder'])}   Ctrl-C stops it safely, the same command resumes`;
    case 'run.resumed':
      return `run ${subject} resumes in ${String(facts['folder'])}: ${of('done', 'record')} there${Number(facts['released']) > 0 ? `, ${of('released', 'prompt')} under way when it stopped, to be asked again` : ''}   Ctrl-C stops it safely`;
    case 'run.draining':
      return `draining: ${of('inFlight', 'request')} in flight`;
    case 'partition.enrolled': {
      const refused = Number(facts['rejected']) > 0 ? `, ${of('rejected', 'row')} refused (see rejected/${subject}.ndjson)` : '';
      const twice = Number(facts['duplicates']) > 0 ? `, ${of('duplicates', 'duplicate')} left out` : '';
      return `${subject}: ${of('prompts', 'prompt')}${twice}${refused}`;
    }
    case 'partition.budget-reached':
      return `${subject}: budget reached, ${count('spent')} of ${count('budget')} tokens`;
    case 'shard.repaired':
      return `${subject}: cut ${formatBytes(Number(facts['cutBytes']))} that were never committed`;
    case 'shard.sealed':
      return `${subject}: shard ${String(facts['shard'])} sealed, ${formatBytes(Number(facts['bytes']))}`;
    case 'run.amended': {
      const changes = Object.entries(facts).flatMap(([key, was]) =>
        key.startsWith('was.') ? [`${key.slice(4)} was ${String(was)}, is now ${String(facts[`now.${key.slice(4)}`])}`] : [],
      );
      return `amended: ${changes.join('; ')}`;
    }
    case 'partition.redoing':
      return `${subject}: ${of('records', 'record')} to be made anew (${String(facts['because'])}); each stays until its new one is there`;
    case 'partition.requeued':
      return `${subject}: asked again, ${count('aside')} set aside and ${count('dropped')} dropped`;
    case 'partition.withdrawn':
      return `${subject}: ${of('records', 'record')} withdrawn, ${of('prompts', 'prompt')} to be asked again, ${of('tokens', 'token')} back in the budget (${String(facts['because'])})`;
    case 'policy.added':
    case 'policy.checked':
    case 'policy.broken':
      return renderPolicy(kind, subject, facts);
    case 'gate.changed':
      return `in flight: ${count('from')} → ${count('to')}, ${String(facts['because'])}`;
    case 'prompt.kept':
      return `${subject}: its record stays, the new attempt came to nothing: ${String(facts['reason'])}: ${String(facts['because'])}`;
    case 'prompt.set-aside':
      return `${subject}: set aside, ${String(facts['reason'])}: ${String(facts['because'])}`;
    case 'run.finished':
    case 'run.stopped':
    case 'server.stopped':
    case 'launch.recorded':
      return undefined;
    default:
      return renderServer(kind, subject, facts);
  }
}

type OfServers =
  | Parameters<typeof renderLaunch>[0]
  | 'machine.away'
  | 'machine.back'
  | Exclude<`server.${string}` & Event['kind'], 'server.stopped'>;

/** A machine, a server, or one launch of it. */
function renderServer(kind: OfServers, subject: string, facts: Facts): string | undefined {
  switch (kind) {
    case 'machine.away':
      return `${subject}: out of reach (${String(facts['because'])}); what runs there goes on, and is waited for at most ${formatDuration(Number(facts['patienceMs']))}`;
    case 'machine.back':
      return `${subject}: back after ${formatDuration(Number(facts['awayMs']))}`;
    case 'server.starting':
      return facts['attach'] === undefined ? `${subject}: starting` : `${subject}: at ${String(facts['attach'])}`;
    case 'server.waiting':
      return `${subject}: not ready (${String(facts['seen'])})${facts['patienceMs'] === undefined ? '' : `; waiting at most ${formatDuration(Number(facts['patienceMs']))}`}`;
    case 'server.ready':
      return `${subject}: ready at ${String(facts['baseUrl'])}, model ${String(facts['model'] || 'not named')}${renderInexact(facts)}`;
    case 'server.log-found':
    case 'server.log-missing':
    case 'server.verified':
      return renderAttached(kind, subject, facts);
    case 'server.left-running':
      return `${subject}: goes on, pid ${String(facts['pid'])}; the next aerie run uses it, aerie server stop ends it`;
    case 'server.left-out':
      return `${subject}: left out of this run, ${String(facts['because'])}`;
    case 'server.lost':
      return `${subject}: lost (${String(facts['how'])}); requests in flight will be asked again`;
    default:
      return renderLaunch(kind, subject, facts);
  }
}

function renderPolicy(kind: 'policy.added' | 'policy.checked' | 'policy.broken', subject: string, facts: Facts): string {
  const because = String(facts['because']);
  if (kind === 'policy.added') return `policy added: ${subject}, ${because} (decided by ${String(facts['by'])})`;
  const rule = String(facts['rule']);
  if (kind === 'policy.broken') return `${subject}: breaks ${rule}, ${because}`;
  return `${subject}: policy ${rule} ${facts['kept'] === true ? 'kept' : 'BROKEN'}, ${because}`;
}

function renderInexact(facts: Facts): string {
  const { inexactBecause, inexactWithTools } = facts;
  if (inexactBecause !== undefined) return `; records will NOT be exact: ${String(inexactBecause)}`;
  return inexactWithTools === undefined ? '' : `; records with tools will NOT be exact: ${String(inexactWithTools)}`;
}
