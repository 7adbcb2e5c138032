/** The shell of setup lines, for whoever asks with them what a launch would meet. Pure. */

/** bash where there is one, as in a launch: `source` and conda's hook are words of bash. */
export function inLaunchShell(script: string): { readonly file: string; readonly args: readonly string[] } {
  const choose = 'if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; fi; exec sh -c "$1"';
  return { file: 'sh', args: ['-c', choose, 'sh', script] };
}
