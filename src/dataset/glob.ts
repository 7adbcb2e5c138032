/**
 * Patterns of file names: `*` and `?` within a step of the path, `[abc]` one character, `{a,b}` either, `**` any steps. Pure.
 * Node's own glob is younger than the oldest Node that Aerie runs on.
 */
const SPECIAL = /[*?[\]{}]/;

export function isPattern(path: string): boolean {
  return SPECIAL.test(path);
}

/** The steps before the first that holds a special character: the folder to look in. */
export function fixedFolderOf(pattern: string): string {
  const steps = pattern.split('/');
  const first = steps.findIndex((step) => isPattern(step));
  return steps.slice(0, first === -1 ? steps.length - 1 : first).join('/');
}

/** Does a path that has `count` steps below the fixed folder need to be looked for at all? */
export function isDeep(pattern: string): boolean {
  return pattern.split('/').includes('**');
}

/** A hidden file is matched only where the pattern names its dot, as a shell does. */
export function matchPattern(pattern: string): (path: string) => boolean {
  const steps = pattern.split('/');
  let source = '';
  for (const [at, step] of steps.entries()) {
    const isLast = at === steps.length - 1;
    if (step === '**') source += isLast ? '(?:[^/.][^/]*/)*[^/.][^/]*' : '(?:[^/.][^/]*/)*';
    else source += `${/^[*?[]/.test(step) ? '(?!\\.)' : ''}${stepSource(step)}${isLast ? '' : '/'}`;
  }
  const whole = new RegExp(`^${source}$`, 'su');
  return (path) => whole.test(path);
}

const SIMPLE: Readonly<Record<string, string>> = { '*': '[^/]*', '?': '[^/]' };

function stepSource(step: string): string {
  let source = '';
  let isInBraces = false;
  for (let at = 0; at < step.length; at += 1) {
    const character = step[at] as string;
    const end = character === '[' ? step.indexOf(']', at + 2) : -1;
    if (end !== -1) {
      source += classSource(step.slice(at + 1, end));
      at = end;
    } else if (character === '{' && step.indexOf('}', at) !== -1) {
      isInBraces = true;
      source += '(?:';
    } else if (isInBraces && (character === '}' || character === ',')) {
      isInBraces = character === ',';
      source += character === ',' ? '|' : ')';
    } else source += SIMPLE[character] ?? character.replace(/[\\^$.+()[\]{}|/]/u, '\\$&');
  }
  return source;
}

function classSource(inside: string): string {
  const isNot = inside.startsWith('!') || inside.startsWith('^');
  return `[${isNot ? '^/' : ''}${inside.slice(isNot ? 1 : 0).replace(/[\\\]^[]/g, '\\$&')}]`;
}
