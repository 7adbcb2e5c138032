/** The model of a launch and the disk of its log, on the machine of the launch. Pure. */
import { formatBytes } from '../../base/units.ts';
import { findFlag, type LaunchFlags, SGLANG_LINE, VLLM_LINE } from '../../engine/launching.ts';
import type { PreflightCheck, PreflightInput } from './preflight-input.ts';

/** As the engine is given it: a name of the hub, or a path on the machine. */
export function modelOf(engine: PreflightInput['engine'], flags: LaunchFlags, model: string): string {
  const written = findFlag(flags, ['model-path', 'model', 'model-tag'], engine === 'vllm' ? VLLM_LINE : SGLANG_LINE);
  return typeof written === 'string' && written !== '' ? written : model;
}

/** OWNER/NAME, which the engine fetches; everything else is a path. */
export function isHubName(model: string): boolean {
  return /^[\w.-]+\/[\w.-]+$/.test(model);
}

/** Nothing where the model is a name of the hub. The engine says it after the minutes of its import, and then speaks of the hub. */
export function checkModel({ modelPath }: PreflightInput): PreflightCheck[] {
  if (modelPath === undefined) return [];
  const { path, isThere } = modelPath;
  const name = 'model';
  if (isThere === undefined)
    return [{ name, verdict: 'unknown', says: `whether ${path} is there could not be asked`, remedy: '' }];
  if (isThere) return [{ name, verdict: 'ok', says: `${path} is there`, remedy: '' }];
  const says = `there is no ${path} that this user can see`;
  return [{ name, verdict: 'refused', says, remedy: 'Correct model: or put it there; a name of the hub is OWNER/NAME.' }];
}

/** The start alone writes 50 KB to 1 MB. */
const NO_LOG_BYTES = 2 ** 20;
/** At work some 150 bytes for each 40 steps and 100 for each request: 10 to 100 MB a day. */
const LITTLE_LOG_BYTES = 2 ** 28;

/** A server whose log finds no room ends, and its log does not say why. */
export function checkLogDisk({ logDisk }: PreflightInput): PreflightCheck {
  const name = 'log';
  const { folder, freeBytes } = logDisk;
  if (freeBytes === undefined)
    return { name, verdict: 'unknown', says: `how much is free at ${folder} is not known`, remedy: '' };
  const says = `${formatBytes(freeBytes)} are free at ${folder}, where its log is written`;
  const remedy = 'Free some, or write log: with a path on a larger disk.';
  if (freeBytes < NO_LOG_BYTES) return { name, verdict: 'refused', says, remedy };
  if (freeBytes < LITTLE_LOG_BYTES) return { name, verdict: 'warning', says, remedy };
  return { name, verdict: 'ok', says, remedy: '' };
}
