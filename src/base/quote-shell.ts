/**
 * One word for a POSIX shell, whatever it holds. Between single quotes a shell changes nothing; a single quote itself is
 * written outside of them. The text must hold no NUL: no argument of any program can.
 */
export function quoteShell(word: string): string {
  if (word.includes('\0')) throw new Error('a word for a shell cannot hold a NUL byte');
  // A word that begins with a dash may hold `=`; another one would be an assignment, and zsh expands `=word`.
  return /^(-[A-Za-z0-9_./:@%+,=-]*|[A-Za-z0-9_./:@%+,-]+)$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
