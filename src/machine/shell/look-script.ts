/**
 * One look at a launch in one round trip. Pure. The script finds who carries the marker, and around those and the recorded program
 * everybody in their sessions and below them; `family.ts` then says who of these belongs.
 */
import { quoteShell } from '../../base/quote-shell.ts';
import {
  describeLook,
  describeMember,
  findMembers,
  type LookWithoutStatus,
  type MemberTexts,
  type SeenStat,
  UNSEEN,
} from '../describe-look.ts';
import { findFamily } from '../family.ts';
import { parseExitStatus } from '../look-until-told.ts';
import type { FamilyMember, ProcessIdentity, ProcessLook } from '../machine.ts';
import { hasEnded, parseStat } from '../parse-stat.ts';
import { type Frames, frameFunctions, numbersIn } from './frames.ts';
import { CARRIERS, FIND, TABLE } from './processes-in-sh.ts';

/** `pid` and `statusPath`: of a launch that is known; 0 and undefined where only the marker is. */
export interface LookQuestion {
  readonly marker: string;
  readonly pid: number;
  readonly statusPath: string | undefined;
}

/** The status is read last: the shell that writes it may end in between, and is not to be missed then. */
export function renderLook({ marker, pid, statusPath }: LookQuestion, nonce: string): string {
  return [
    frameFunctions(nonce),
    ...[TABLE, FIND, CARRIERS, AROUND],
    `aerie_word=${quoteShell(`AERIE_LAUNCH=${marker}`)}`,
    READ_BOOT,
    'aerie_say boot "$aerie_boot"',
    'aerie_table',
    'aerie_say rows "$aerie_rows"',
    'aerie_carriers',
    'aerie_say carriers "$aerie_marked"',
    `aerie_around ${pid > 0 ? pid : ''} $aerie_marked`,
    'aerie_files=',
    'for aerie_pid in $aerie_in; do',
    '  aerie_at=$aerie_nonce/proc/$aerie_pid',
    '  aerie_files="$aerie_files $aerie_at/stat $aerie_at/status $aerie_at/io $aerie_at/cmdline"',
    'done',
    'test -z "$aerie_files" || aerie_show $aerie_files',
    ...(statusPath === undefined ? [] : [renderStatus(statusPath)]),
    'exit 0',
    '',
  ].join('\n');
}

/** As in the launch script. */
export const READ_BOOT = 'aerie_boot=; read -r aerie_boot 2>/dev/null </proc/sys/kernel/random/boot_id';

function renderStatus(path: string): string {
  const file = quoteShell(path);
  return `if test -f ${file}; then aerie_say status "$(head -c 20 2>/dev/null <${file})"; fi`;
}

/** `aerie_around PID…` sets aerie_in to these, all in their sessions (0 is none: see `family.ts`), and all who descend from one. */
export const AROUND = `
aerie_around() {
  aerie_in=" $* " aerie_sessions=' ' aerie_grew=yes
  for aerie_row in $aerie_rows; do
    case $aerie_in in *" \${aerie_row%%:*} "*) ;; *) continue ;; esac
    aerie_row=\${aerie_row%:*}
    case $aerie_row in *:0) ;; *) aerie_sessions="$aerie_sessions\${aerie_row##*:} " ;; esac
  done
  while test -n "$aerie_grew"; do
    aerie_grew=
    for aerie_row in $aerie_rows; do
      aerie_pid=\${aerie_row%%:*}
      case $aerie_in in *" $aerie_pid "*) continue ;; esac
      aerie_row=\${aerie_row#*:} aerie_session=\${aerie_row#*:}
      case "$aerie_in:$aerie_sessions" in *" \${aerie_row%%:*} "*:*|*:*" \${aerie_session%%:*} "*) ;; *) continue ;; esac
      aerie_in="$aerie_in$aerie_pid " aerie_grew=yes
    done
  done
}`;

export function parseLook(frames: Frames, identity: ProcessIdentity): ProcessLook {
  return { ...parseProcesses(frames, identity), exitStatus: parseExitStatus(frames.get('status') ?? '') };
}

function parseProcesses(frames: Frames, identity: ProcessIdentity): LookWithoutStatus {
  const bootId = frames.get('boot') ?? '';
  if (bootId === '' || (frames.get('rows') ?? '') === '') return UNSEEN;
  const { main, family } = findMembers(parseStats(frames), bootId, identity);
  return describeLook(
    main,
    family.map((stat) => [stat, textsOf(stat.pid, frames)] as const),
    bootId,
  );
}

export function parseCarriers(frames: Frames): FamilyMember[] {
  const bootId = frames.get('boot') ?? '';
  return findFamily(parseStats(frames), undefined).map((stat) =>
    describeMember(stat, textsOf(stat.pid, frames).commandLine, bootId),
  );
}

function parseStats(frames: Frames): SeenStat[] {
  const carriers = new Set(numbersIn(frames.get('carriers')));
  return [...frames].flatMap(([name, text]) => {
    const stat = /^\/proc\/\d+\/stat$/.test(name) ? parseStat(text) : undefined;
    return stat === undefined ? [] : [{ ...stat, carriesMarker: carriers.has(stat.pid), hasEnded: hasEnded(stat.state) }];
  });
}

function textsOf(pid: number, frames: Frames): MemberTexts {
  const text = (name: string) => frames.get(`/proc/${pid}/${name}`) ?? '';
  return { commandLine: text('cmdline'), status: text('status'), io: text('io') };
}
