/**
 * Why a machine was not reached, out of ssh's own words, and whether waiting can help. Pure.
 *
 * ssh says it in English whatever the locale. What is not known here counts as something that passes: a machine that restarts, a
 * cable, a network. Untrusted: a server chooses some of the words, so they are short and hold no control characters.
 */
export interface Lost {
  readonly because: string;
  /** It will not go away by waiting: a key, a host key, a name, an option. */
  readonly isConfiguration: boolean;
  /** Something else than a shell ran there. */
  readonly lacks?: 'sh';
}

/** Text of ssh → a wait is in vain. */
const CONFIGURATION = [
  /permission denied \(/i, // with the methods that are left; without them it is about a file
  /host key verification failed/i,
  /remote host identification has changed/i,
  /too many authentication failures/i,
  /no matching (host key type|key exchange method|cipher|mac) found/i,
  /bad configuration option|terminating, \d+ bad configuration|bad owner or permissions|keyword .* requires an argument/i,
  /could not resolve hostname .*: (name or service not known|nodename nor servname|no address associated|invalid)/i,
  /hostname contains invalid characters|bad port|unknown host/i,
  /no user exists for uid \d+|you don't exist, go away/i, // ssh itself wants its user in /etc/passwd; a container with `--user` may have none
  /your password has expired|account is currently not available|account has expired|not allowed to/i,
];

/** What ssh says besides, and what is not the reason: multiplexing that falls back, warnings, its own goodbye. */
const ASIDE = [/^mux_client_/, /^control ?socket/i, /^warning:/i, /^\*\*/, /^@+$/, /^@ .* @$/, /^killed by signal/i, /^debug\d:/];

const LONGEST = 300;

/** `code`: with which ssh ended. 255 is its own; any other, without a script that began, is of whatever ran there instead of a shell. */
export function explainLost(stderr: string, code: number | undefined, hadBegun: boolean): Lost {
  const said = stderr
    .split('\n')
    .map((line) => line.replaceAll(UNSAFE, ' ').trim())
    .filter((line) => line !== '' && !ASIDE.some((aside) => aside.test(line)));
  const words = said.slice(-2).join('; ').slice(0, LONGEST);
  const isOther = !hadBegun && code !== undefined && code !== 255;
  if (isOther) {
    const because = `it runs no sh: the command ended with ${code}${words === '' ? '' : `, and said: ${words}`}`;
    return { because, isConfiguration: true, lacks: 'sh' };
  }
  const isConfiguration = !hadBegun && CONFIGURATION.some((text) => text.test(stderr));
  return { because: words === '' ? 'the connection was lost, and ssh has not said why' : words, isConfiguration };
}

const UNSAFE = /[\p{C}\p{Zl}\p{Zp}]/gu;
