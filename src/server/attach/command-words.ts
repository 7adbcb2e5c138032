/**
 * The flags that a running server was started with, from its command line. Pure. Keys stand on command lines: what is one by its name is
 * replaced before anybody sees the flags.
 */
import type { LaunchFlag, LaunchFlags } from '../../engine/launching.ts';

const SECRET = '[secret]';
/** `api-key`, `admin-api-key`, `hf-token`, `ssl-keyfile-password`; `max-total-tokens` and `tokenizer` are none. */
const SECRET_NAME = /(^|[-_])(key|token|secret|password|passwd|credentials?|auth)$/i;
/** A launcher by module or by program, and the word that vLLM has for serving. */
const LAUNCHER = /^(sglang\.launch_server|vllm\.entrypoints\.[\w.]+|(.*\/)?(sglang|vllm))$/;

/** Empty where the command line is none of an engine's: a process may have retitled itself. */
export function flagsOfCommand(words: readonly string[]): LaunchFlags {
  const flags: Record<string, LaunchFlag> = {};
  const given = ownWords(words);
  for (let at = 0; at < given.length; at++) {
    const word = given[at] ?? '';
    if (!isFlag(word)) continue;
    const equals = word.indexOf('=');
    const name = word.slice(0, equals === -1 ? undefined : equals).replace(/^-+/, '');
    const values = equals === -1 ? valuesFrom(given, at + 1) : [word.slice(equals + 1)];
    const [only] = values;
    const value = values.length > 1 ? values : (only ?? true);
    flags[name] = value !== true && isSecretName(name) ? SECRET : withoutCredentials(value);
  }
  return flags;
}

export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** What stands behind the launcher; `--` ends the words of one that wraps another. */
function ownWords(words: readonly string[]): readonly string[] {
  const wrapped = words.lastIndexOf('--');
  if (wrapped >= 0) return words.slice(wrapped + 1);
  const launcher = words.findIndex((word) => LAUNCHER.test(word));
  return launcher < 0 ? [] : words.slice(launcher + 1);
}

function isFlag(word: string): boolean {
  return /^--?[A-Za-z]/.test(word);
}

function valuesFrom(words: readonly string[], from: number): string[] {
  const end = words.findIndex((word, at) => at >= from && isFlag(word));
  return words.slice(from, end === -1 ? undefined : end);
}

/** `https://user:password@host`, in whatever text it stands. */
function withoutCredentials(value: LaunchFlag): LaunchFlag {
  const clean = (text: string) => text.replace(/(\w:\/\/)[^/\s@]+@/g, `$1${SECRET}@`);
  if (typeof value === 'string') return clean(value);
  return typeof value === 'object' ? value.map((one) => (typeof one === 'string' ? clean(one) : one)) : value;
}
