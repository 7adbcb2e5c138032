/**
 * Starts a program that outlives Aerie: `launch-script.ts` given to a shell in a session of its own.
 * On failure: an AerieError `server.did-not-start` that names the setup line, its exit status and its last output.
 */
import { stat } from 'node:fs/promises';
import { AerieError, systemCodeOf } from '../../base/errors.ts';
import { type DetachedReport, startDetached } from '../../host/detached.ts';
import type { Host } from '../../host/host.ts';
import { describeFailedStart } from '../failed-start.ts';
import { launchShellArgs, parseReport, renderLaunchScript, reportPathOf, saysStarted } from '../launch-script.ts';
import type { DetachedStart, ProcessIdentity } from '../machine.ts';
import { identityOf, readStat } from './proc.ts';
import { readSlice } from './read-slice.ts';

export async function launchHere(request: DetachedStart, host: Host): Promise<ProcessIdentity> {
  const logBytesBefore = (await stat(request.logPath).catch(() => undefined))?.size ?? 0;
  const heard = await hear(request, host);
  const heardReport = parseReport(heard.said);
  const report = heardReport.kind === 'silent' ? parseReport(await readTextSlice(reportPathOf(request.statusPath))) : heardReport;
  if (report.kind === 'started') return recordStarted(report, host);
  const logBytes = (await stat(request.logPath).catch(() => undefined))?.size ?? 0;
  const log = await readSlice(request.logPath, Math.max(logBytesBefore, logBytes - LOG_BYTES), LOG_BYTES);
  const output = `${heard.stderr}\n${log === undefined ? '' : new TextDecoder().decode(log.bytes)}`;
  throw describeFailedStart(request, report, output);
}

async function readTextSlice(path: string): Promise<string> {
  const slice = await readSlice(path, 0, LOG_BYTES);
  return slice === undefined ? '' : new TextDecoder().decode(slice.bytes);
}

/** Of what setup lines wrote: far above what a person reads. */
const LOG_BYTES = 100_000;

async function hear(request: DetachedStart, host: Host): Promise<DetachedReport> {
  const asked = {
    args: launchShellArgs(request.marker),
    env: { ...host.env, ...request.env, AERIE_LAUNCH: request.marker },
    input: renderLaunchScript(request),
    isReport: saysStarted,
  };
  try {
    return await startDetached({ file: 'bash', ...asked }).catch((thrown: unknown) => {
      if (systemCodeOf(thrown) === 'ENOENT') return startDetached({ file: 'sh', ...asked });
      throw thrown;
    });
  } catch (thrown) {
    const because = thrown instanceof Error ? thrown.message : String(thrown);
    throw new AerieError('server.did-not-start', `No shell could be started: ${because}.`, {
      remedy: 'Nothing was started. An environment above what the system takes (E2BIG) or a PATH without sh does this.',
    });
  }
}

/** Between its birth and the moment it becomes the program, a child has the command line of its shell: a millisecond, as a rule. */
const BECOMES_EVERY_MS = 10;
const BECOMES_LOOKS = 100;

async function recordStarted(
  { pid, startTicks, bootId }: Pick<ProcessIdentity, 'pid' | 'startTicks' | 'bootId'>,
  { clock }: Host,
): Promise<ProcessIdentity> {
  const ended = { pid, startTicks, bootId, command: '' };
  for (let look = 0; ; look++) {
    const now = await identityOf(pid, bootId);
    if (now === undefined || now.startTicks !== startTicks) return ended;
    const parent = (await readStat(pid))?.parent;
    const shell = parent === undefined ? undefined : await identityOf(parent, bootId);
    // A command of several parts stays a shell for good.
    if (now.command !== shell?.command || look === BECOMES_LOOKS) return now;
    await clock.sleep(BECOMES_EVERY_MS);
  }
}
