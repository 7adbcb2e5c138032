/** The history of launches in `aerie status`: a line for each event, the newest last, and the launches that live. Pure. */
import type { LivingLaunch } from '../../app/launch-history.ts';
import type { Event } from '../../base/events.ts';
import { countOf } from './count-of.ts';
import { renderEvent } from './event.ts';

/** As many as a screen holds beside the rest; `--json` has all. */
const MOST_SHOWN = 20;
/** A line of a terminal or two; what is cut stands in the log and in `--json`. */
const MOST_CHARACTERS = 200;

export function renderHistory(events: readonly Event[], living: readonly LivingLaunch[]): string[] {
  const shown = events.slice(-MOST_SHOWN);
  const count = shown.length < events.length ? `the last ${shown.length} of ` : '';
  return [
    ...(events.length === 0
      ? []
      : [`launches   ${count}${countOf(events.length, 'event')}${count === '' ? '' : ' (all with --json)'}`]),
    ...shown.map((event) => `  ${localTime(event.at)}  ${renderLine(event)}`),
    ...living.map(renderLiving),
  ];
}

function renderLiving({ server, launch, pid, port, log, readyAt, machine, unseen }: LivingLaunch): string {
  if (unseen !== '') return `unseen     ${server}: launch ${launch} on ${machine}, pid ${pid}, may live: ${unseen}`;
  const where = machine === '' ? '' : ` on ${machine}`;
  return `lives      ${server}: launch ${launch}${where}, pid ${pid}, port ${port}${readyAt === 0 ? ', not ready yet' : ''}, log ${log}`;
}

function renderLine(event: Event): string {
  const { kind, subject, facts } = event;
  const whole =
    kind === 'launch.ended'
      ? `${subject}: launch ${String(facts['launch'])} ended, ${String(facts['how'])}`
      : (renderEvent(event) ?? kind);
  const [first = ''] = whole.split('\n');
  return first.length > MOST_CHARACTERS ? `${first.slice(0, MOST_CHARACTERS - 1)}…` : first;
}

/** By the clock on the wall where it is read. */
function localTime(at: number): string {
  const time = new Date(at);
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`;
  return `${day} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`;
}
