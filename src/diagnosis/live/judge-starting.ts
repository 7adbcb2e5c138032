/**
 * A server that has not been ready yet. Pure. Slow is not hung: it is hung when for longer than the phase's own limit neither log,
 * memory, disk nor GPU moved and no compiler worked. A closed port says nothing about a start.
 */
import { formatDuration } from '../../base/units.ts';
import { limitOf } from '../judge-silence.ts';
import type { LiveVerdict } from './look.ts';
import { lastMoved, type Movement, movements, START_SIGNS } from './movement.ts';
import { change, type LookInput, logVerdict, sayHealth } from './view.ts';

export function judgeStarting(input: LookInput): LiveVerdict {
  const { account, looks } = input;
  const [first, look] = [looks[0], looks.at(-1)];
  const now = look?.atMs ?? 0;
  const all = movements(looks, START_SIGNS);
  const stillForMs = now - (lastMoved(all)?.movedAt ?? first?.atMs ?? now);
  const limitMs = limitOf(account);
  const verdict = logVerdict(input, account, stillForMs);
  const signs = [...all.map((one) => sayMovement(one, now)), sayHealth(look?.health), sayLimit(verdict.phase, limitMs)];
  const still = { stillForMs, limitMs };
  // Notices and figures of the log may say that it hangs; what it does outside its log knows better.
  const elsewhere = lastMoved(all.filter(({ name }) => name !== 'the log'));
  const isBusy = elsewhere?.movedAt !== undefined && now - elsewhere.movedAt <= limitMs;
  if (verdict.state === 'hung' && isBusy && stillForMs <= limitMs)
    return change(
      input,
      verdict,
      {
        state: 'initializing',
        code: 'none',
        note: `Its log looks like a hang (${verdict.cause}), and ${elsewhere.name} moved ${formatDuration(now - elsewhere.movedAt)} ago.`,
      },
      still,
      signs,
    );
  return change(input, verdict, { state: verdict.state }, still, signs);
}

export function sayMovement({ name, movedAt, words }: Movement, now: number): string {
  return `${name}: ${words}, ${movedAt === undefined ? 'not moved while it was watched' : `moved ${formatDuration(now - movedAt)} ago`}`;
}

function sayLimit(phase: string, limitMs: number): string {
  return `${phase === '' ? 'a start' : phase} may stand still for ${formatDuration(limitMs)}`;
}
