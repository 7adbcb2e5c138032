/**
 * Looks at a server that lives, and its log → what state it is in and why. Pure: one decision, from the gravest down.
 * Promises: time is the looker's alone, so that log times of any zone, speed or none at all change nothing; what Aerie's own probes
 * cause is neither activity nor progress; more progress never makes it more hung; a server that nobody asks is never hung.
 */
import { hasWorked } from '../account-view.ts';
import { judgeEnd } from './judge-end.ts';
import { judgeServing } from './judge-serving.ts';
import { judgeStarting } from './judge-starting.ts';
import type { LiveVerdict, Look } from './look.ts';
import { lastMoved, movements, WORK_SIGNS } from './movement.ts';
import { change, isSick, isWell, type LookInput, logVerdict, sayHealth } from './view.ts';

export type { LookInput } from './view.ts';

/** A thousand looks of some seconds: longer than any limit, and little memory. */
const LOOKS_KEPT = 1024;

/** Adds a look and forgets every second one of the older half when they are too many; the first one stays. */
export function keepLooks(looks: readonly Look[], look: Look): readonly Look[] {
  if (looks.length < LOOKS_KEPT) return [...looks, look];
  const half = LOOKS_KEPT / 2;
  return [...looks.filter((_, at) => at >= half || at % 2 === 0), look];
}

export function judgeLook(input: LookInput): LiveVerdict {
  const { account, looks } = input;
  const look = looks.at(-1);
  const end = judgeEnd(input);
  if (end !== undefined) return end;
  if (look === undefined || isAbsent(input)) return absent(input, look);
  const log = logVerdict(input, account, 0);
  if (log.state === 'crashed' && !outlived(input, look)) {
    const lives = look.process?.presence === 'running' ? ['the main process is still there'] : [];
    return change(input, log, { state: 'crashed' }, { stillForMs: 0, limitMs: 0 }, [...lives, sayHealth(look.health)]);
  }
  const wasReady = account.ready !== undefined || hasWorked(account) || looks.some(({ health }) => isWell(health));
  return wasReady ? judgeServing(input, look) : judgeStarting(input);
}

/** Nothing of it was ever seen: no process, no answer; a log that ended well is an old one. */
function isAbsent({ account, looks }: LookInput): boolean {
  if (looks.some(({ process, health }) => process !== undefined || health?.kind === 'http')) return false;
  const isOld = account.ready !== undefined || hasWorked(account) || account.shutdown !== undefined;
  return (account.lines === 0 || isOld) && looks.every(({ health }) => health === undefined || isSick(health));
}

function absent(input: LookInput, look: Look | undefined): LiveVerdict {
  const log = logVerdict(input, input.account, 0);
  const signs = ['no process of it is known', sayHealth(look?.health)];
  const state = log.state === 'crashed' ? 'crashed' : 'absent';
  const to = state === 'crashed' ? ({ state } as const) : ({ state, phase: '', code: 'none' } as const);
  return change(input, log, to, { stillForMs: 0, limitMs: 0 }, signs);
}

/** The log reads like an end, and tokens moved well after its last line: what died was a part that it lives without. */
const DYING_MS = 30_000;

function outlived({ looks }: LookInput, look: Look): boolean {
  if (!isWell(look.health)) return false;
  const written = movements(looks, [{ name: 'the log', read: ({ logBytes }) => logBytes, step: 1, say: String }])[0];
  const worked = lastMoved(
    movements(
      looks,
      WORK_SIGNS.filter(({ name }) => name !== 'work in the log'),
    ),
  );
  const wroteAt = written?.movedAt ?? looks[0]?.atMs ?? 0;
  return worked?.movedAt !== undefined && worked.movedAt > wroteAt + DYING_MS;
}
