/**
 * Claims a launch for who says that it will not come: the other side of the claim that its script makes (`launch-script.ts`). Both make
 * the same folder, which only one of them can. Asked again after a lost answer it finds its own claim, and that is one that is taken.
 */
import { dirname } from 'node:path/posix';
import { AerieError } from '../base/errors.ts';
import { quoteShell } from '../base/quote-shell.ts';
import { claimPathOf } from './launch-script.ts';
import type { DetachedStart, Machine } from './machine.ts';

/** Two folders; a network disk that wakes up takes seconds. */
const CLAIM_MS = 60_000;
const TAKEN = 3;

/**
 * False: it was claimed before, by its script or by another look. Throws `server.not-launched` where the machine takes no claim (a full
 * disk, a folder that may not be written): a start that is on its way could then still come.
 */
export async function claimLaunch(
  machine: Pick<Machine, 'name' | 'run'>,
  launch: Pick<DetachedStart, 'marker' | 'statusPath'>,
): Promise<boolean> {
  const claim = quoteShell(claimPathOf(launch));
  const script = [
    `mkdir -p -- ${quoteShell(dirname(launch.statusPath))} || exit 1`,
    `mkdir -- ${claim} && exit 0`,
    `if test -d ${claim}; then exit ${TAKEN}; fi`,
    'exit 1',
  ].join('\n');
  const result = await machine.run({ file: 'sh', args: ['-c', script], timeoutMs: CLAIM_MS });
  if (result.kind === 'ended' && result.code === 0) return true;
  if (result.kind === 'ended' && result.code === TAKEN) return false;
  const because = result.kind === 'ended' ? (result.stderr.trim().split('\n').at(-1) ?? '') : result.kind;
  throw new AerieError(
    'server.not-launched',
    `Whether the last start on ${machine.name} may still come cannot be settled: ${because}`,
    {
      remedy: `Free the place, or make ${dirname(launch.statusPath)} writable there; then give the same command again. Nothing was started or ended.`,
    },
  );
}
