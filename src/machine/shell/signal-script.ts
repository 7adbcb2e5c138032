/**
 * A signal to one process, if it is still the one that was recorded. Pure. The shell reads boot, state and start time by itself
 * right before it signals, with no program started in between.
 */
import { quoteShell } from '../../base/quote-shell.ts';
import type { ProcessIdentity, SignalResult } from '../machine.ts';
import { type Frames, frameFunctions } from './frames.ts';
import { READ_BOOT } from './look-script.ts';

/** Field 3 of the stat is the first one after the name, so the start time, field 22, is the twentieth. */
export function renderSignal({ pid, startTicks, bootId }: ProcessIdentity, signal: 'SIGTERM' | 'SIGKILL', nonce: string): string {
  return [
    frameFunctions(nonce),
    'aerie_tell() { aerie_say signal "$1"; exit 0; }',
    READ_BOOT,
    'test -n "$aerie_boot" || aerie_tell not-permitted', // nobody can say that it is still the same process
    'aerie_stat=',
    `{ while read -r aerie_line; do aerie_stat="$aerie_stat $aerie_line"; done </proc/${pid}/stat; } 2>/dev/null`,
    'set -f',
    `set -- \${aerie_stat##*') '}`,
    'test $# -ge 20 || aerie_tell gone',
    `test "$aerie_boot:\${20}" = ${quoteShell(`${bootId}:${startTicks}`)} || aerie_tell another-process`,
    'case $1 in Z|X|x) aerie_tell gone ;; esac',
    `kill -s ${signal.slice('SIG'.length)} ${pid} 2>/dev/null && aerie_tell sent`,
    `test -d /proc/${pid} || aerie_tell gone`,
    'aerie_tell not-permitted',
    '',
  ].join('\n');
}

export function parseSignal(frames: Frames): SignalResult | undefined {
  const said = frames.get('signal');
  return RESULTS.find((result) => result === said);
}

const RESULTS: readonly SignalResult[] = ['sent', 'gone', 'not-permitted', 'another-process'];
