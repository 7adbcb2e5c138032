/**
 * Flags against the launcher's own `--help`. Pure. A flag that it does not list ends the launch at once (argparse, exit 2), after minutes of
 * imports; without the list only what looks like a slip is pointed out.
 */
import { FLAG_TABLES } from '../../capacity/plan-launch.ts';
import { isWholeHelp, parseHelpFlags, standingOf } from '../../engine/help-flags.ts';
import { parseFlagWords } from '../../engine/launch-flags.ts';
import { findFlag, SGLANG_LINE, VLLM_LINE, wordsOf } from '../../engine/launching.ts';
import { findNearest } from '../../spec/nearest.ts';
import { nearMisses } from './near-misses.ts';
import type { PreflightCheck, PreflightInput } from './preflight-input.ts';

export function checkFlags(input: PreflightInput): PreflightCheck {
  const { engine, help } = input;
  const names = parseHelpFlags(help ?? '');
  const written = writtenFlags(input);
  if (!isWholeHelp(engine, names)) return withoutHelp(input, help);
  const wrong = written.flatMap((flag) => {
    const standing = standingOf(engine, bareOf(flag), names);
    if (standing === 'known') return [];
    if (standing === 'ambiguous') return [`${flag} is the beginning of several flags`];
    const near = findNearest(bareOf(flag), [...names]);
    return [`${flag} is no flag of this version${near === undefined ? '' : ` (did you mean --${near}?)`}`];
  });
  if (wrong.length === 0)
    return { name: 'flags', verdict: 'ok', says: `the launcher knows all ${written.length} flags`, remedy: '' };
  return {
    name: 'flags',
    verdict: 'refused',
    says: wrong.join('; '),
    remedy: 'Correct flags: in the run file, or use a version that has them.',
  };
}

/** As they will stand on the command line; the model of vLLM stands there without a flag. */
function writtenFlags({ engine, flags }: PreflightInput): string[] {
  const line = engine === 'vllm' ? VLLM_LINE : SGLANG_LINE;
  const isModel = (name: string) => engine === 'vllm' && findFlag({ [name]: true }, ['model', 'model-tag'], line) !== undefined;
  return Object.entries(flags)
    .filter(([name]) => !isModel(name))
    .flatMap(([name, value]) => wordsOf({ [name]: value }, line).slice(0, 1))
    .map((word) => word.split('=')[0] ?? word);
}

function bareOf(flag: string): string {
  return flag.replace(/^-+/, '');
}

function withoutHelp({ engine, flags }: PreflightInput, help: string | undefined): PreflightCheck {
  const { unread, problems } = parseFlagWords(wordsOf(flags, engine === 'vllm' ? VLLM_LINE : SGLANG_LINE), FLAG_TABLES[engine]);
  const slips = [...problems, ...nearMisses(unread, FLAG_TABLES[engine])];
  const asked = help === undefined ? 'the launcher was not asked for its flags' : 'the launcher does not list its flags';
  if (slips.length === 0)
    return { name: 'flags', verdict: 'unknown', says: `${asked}; none of those written looks like a slip`, remedy: '' };
  return {
    name: 'flags',
    verdict: 'warning',
    says: `${asked}; ${slips.join(' ')}`,
    remedy: 'Correct flags: in the run file where it was a slip.',
  };
}
