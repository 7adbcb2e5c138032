/** Shells to try scripts of POSIX sh in, and a PATH that holds nothing but sh and coreutils. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Shells that are here. */
export function shellsHere(): readonly (readonly [name: string, words: readonly string[]])[] {
  const all = [
    ['dash', ['dash']],
    ['bash --posix', ['bash', '--posix']],
    ['busybox ash', ['busybox', 'ash']],
  ] as const;
  return all.filter(([, [file, ...args]]) => spawnSync(file, [...args, '-c', 'true']).status === 0);
}

/** A folder for PATH that holds sh and the programs of coreutils, and nothing else. */
export function makeBarePath(folder: string): string {
  const bare = join(folder, 'bare');
  mkdirSync(bare);
  for (const program of COREUTILS) {
    const found = (process.env['PATH'] ?? '').split(delimiter).find((at) => existsSync(join(at, program)));
    if (found !== undefined) symlinkSync(join(found, program), join(bare, program));
  }
  return bare;
}

/** Those of coreutils that people and scripts use, as its manual lists them; some are builtins as well. */
const COREUTILS =
  `sh arch b2sum base32 base64 basename basenc cat chgrp chmod chown cksum comm cp csplit cut date dd df dir dircolors dirname
 du echo env expand expr factor false fmt fold groups head hostid id install join kill link ln logname ls md5sum mkdir mkfifo mknod mktemp mv
 nice nl nohup nproc numfmt od paste pathchk pinky pr printenv printf ptx pwd readlink realpath rm rmdir seq sha1sum sha256sum shred shuf
 sleep sort split stat stdbuf stty sum sync tac tail tee test timeout touch tr true truncate tsort tty uname unexpand uniq unlink users vdir
 wc who whoami yes`
    .split(/\s+/)
    .filter((word) => word !== '');
