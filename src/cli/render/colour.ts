/**
 * Colour on a terminal alone, or where FORCE_COLOR asks for it, and never where NO_COLOR forbids it: a log must hold plain
 * text, also in CI, where the library would colour of itself.
 */
import pc from 'picocolors';

export function isColourWanted(env: Readonly<Record<string, string | undefined>>, isTerminal: boolean): boolean {
  if (env['NO_COLOR']) return false;
  if (env['FORCE_COLOR']) return env['FORCE_COLOR'] !== '0';
  return isTerminal && env['TERM'] !== 'dumb';
}

export const stderrColour = pc.createColors(isColourWanted(process.env, process.stderr.isTTY === true));
export const stdoutColour = pc.createColors(isColourWanted(process.env, process.stdout.isTTY === true));
