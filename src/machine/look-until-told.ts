/** A look at a launch waits for the exit status of a program that has just ended: the shell that reaped it is about to write it. */
import type { Clock } from '../host/host.ts';
import { isLaunchShell } from './launch-script.ts';
import type { FamilyMember, ProcessLook } from './machine.ts';

/** Between the end of a program and the status on the disk: a slow disk's sync. */
const STATUS_EVERY_MS = 50;
const STATUS_LOOKS = 60;

export async function lookUntilTold(lookOnce: () => Promise<ProcessLook>, clock: Clock): Promise<ProcessLook> {
  for (let nth = 0; ; nth++) {
    const look = await lookOnce();
    const { main, family, exitStatus } = look;
    if (exitStatus !== undefined && main === 'unknown') return { ...look, main: 'gone' };
    const hasEnded = main === 'gone' || main === 'zombie';
    const isComing = hasEnded && exitStatus === undefined && family.some((member) => isAboutToWrite(member, family));
    if (!isComing || nth === STATUS_LOOKS) return look;
    await clock.sleep(STATUS_EVERY_MS);
  }
}

/** The waiting shell, once the program that it waits for has ended. */
function isAboutToWrite(member: FamilyMember, family: readonly FamilyMember[]): boolean {
  return isLaunchShell(member.command) && !family.some(({ parent, presence }) => parent === member.pid && presence === 'running');
}

/** The file is renamed into place whole, so what is there is a number. */
export function parseExitStatus(text: string): number | undefined {
  return /^\d+$/.test(text.trim()) ? Number(text) : undefined;
}
