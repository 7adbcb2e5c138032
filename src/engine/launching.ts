/**
 * How an engine is started: the words behind its command, from the flags of a run file. Pure.
 * Promises: what a run file says is passed on as it is written; what is added (model, host, port, metrics) is added only where the
 * flags do not say it; what is sent is what `effectiveFlags` says, so that it can be recorded and compared.
 */
import { quoteShell } from '../base/quote-shell.ts';

/** What stands behind a flag; `true` is a flag without a value, a list is one that takes several. */
export type LaunchFlag = string | number | boolean | readonly (string | number)[];
export type LaunchFlags = Readonly<Record<string, LaunchFlag>>;

export interface LaunchWords {
  /** A name on the hub, or a folder. */
  readonly model: string;
  readonly host: string;
  readonly port: number;
  /** As the run file has them, without dashes. */
  readonly flags: LaunchFlags;
}

export interface Launching {
  /** What starts the engine where the run file has no `command`, as the shell reads it. */
  readonly usualCommand: string;
  /** The flags that are sent: those of the run file first, and what they leave open behind them. */
  effectiveFlags(launch: LaunchWords): LaunchFlags;
  /** The words behind the command, unquoted. */
  renderWords(launch: LaunchWords): string[];
  /** Words that make the command list its flags; the first that lists them all counts (`engine/help-flags.ts`). */
  readonly helpWords: readonly (readonly string[])[];
}

/** How one engine's command line differs from another's. */
export interface CommandLine {
  /** `--no-X` for `false`; without it a switch that is off is left out. */
  readonly hasNegations: boolean;
  /** Names of up to three letters have one dash (`-tp`, `-dp`, `-q`); with two the parser does not know them. */
  readonly hasShortNames: boolean;
  readonly underscoresAreDashes: boolean;
}

export const SGLANG_LINE: CommandLine = { hasNegations: false, hasShortNames: false, underscoresAreDashes: false };
export const VLLM_LINE: CommandLine = { hasNegations: true, hasShortNames: true, underscoresAreDashes: true };

/** Flags as written → words. The last of several wins in both engines, so order is kept. */
export function wordsOf(flags: LaunchFlags, { hasNegations, hasShortNames }: CommandLine): string[] {
  return Object.entries(flags).flatMap(([name, value]) => {
    const bare = bareName(name);
    const flag = `${hasShortNames && bare.length <= 3 ? '-' : '--'}${bare}`;
    if (value === true) return [flag];
    if (value === false) return hasNegations ? [`--no-${bare}`] : [];
    const values = (typeof value === 'object' ? value : [value]).map(String);
    const [only] = values;
    // A parser takes a word that begins with a dash for the next flag, unless it is a number.
    if (values.length === 1 && only !== undefined && /^-/.test(only) && !/^-\d*\.?\d+$/.test(only)) return [`${flag}=${only}`];
    return [flag, ...values];
  });
}

function bareName(name: string): string {
  return name.replace(/^-+/, '');
}

/** The flag under any of these names, as written; undefined where none of them is. */
export function findFlag(
  flags: LaunchFlags,
  names: readonly string[],
  { underscoresAreDashes }: CommandLine,
): LaunchFlag | undefined {
  const plain = (name: string) => (underscoresAreDashes ? bareName(name).replaceAll('_', '-') : bareName(name));
  const found = Object.entries(flags).filter(([name]) => names.includes(plain(name)));
  return found.at(-1)?.[1];
}

/** The port that the flags name; undefined where they leave it open. */
export function portIn(flags: LaunchFlags): number | undefined {
  const port = Number(findFlag(flags, ['port'], VLLM_LINE));
  return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined;
}

/** What is added where the flags do not say it under any of its names. */
export interface Added {
  readonly name: string;
  readonly names: readonly string[];
  readonly value: LaunchFlag;
}

export function addMissing(flags: LaunchFlags, added: readonly Added[], line: CommandLine): LaunchFlags {
  const missing = added.filter(({ names }) => findFlag(flags, names, line) === undefined);
  return { ...flags, ...Object.fromEntries(missing.map(({ name, value }) => [name, value])) };
}

/** The whole command, as the shell reads it. `command` is the run file's own, or the usual one. */
export function renderCommand(command: string, words: readonly string[]): string {
  return [command, ...words.map(quoteShell)].join(' ');
}

/** Flags whose value is a key. They should be in the environment; where they are not, no event and no screen shows them. */
const SECRET_FLAG = /^--?(?:[\w-]*-)?(?:api-key|token|password|secret)(?:=|$)/i;

/** The same for people and for events: one line, without keys. */
export function describeCommand(command: string, words: readonly string[]): string {
  const shown = words.map((word, at) => {
    const flag = SECRET_FLAG.exec(word)?.[0];
    if (flag?.endsWith('=') === true) return `${flag}…`;
    const isValue = !word.startsWith('--') && isSecretFlag(words[at - 1]);
    return isValue ? '…' : quoteShell(word);
  });
  return [command, ...shown].join(' ');
}

function isSecretFlag(word: string | undefined): boolean {
  return word !== undefined && SECRET_FLAG.test(word) && !word.includes('=');
}
