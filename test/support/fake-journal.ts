/** Puts a journalctl and a systemctl of one file on a PATH (`fake-journal.mjs`), and real processes into a real cgroup of a unit. */
import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { quoteShell } from '../../src/base/quote-shell.ts';

const PROGRAM = fileURLToPath(new URL('./fake-journal.mjs', import.meta.url));

export interface FakeJournal {
  readonly env: Readonly<Record<'PATH', string>>;
  add(unit: string, invocation: string, ...messages: (string | null | readonly number[])[]): void;
}

export function installFakeJournal(folder: string): FakeJournal {
  const [file, binFolder] = [join(folder, 'journal.jsonl'), join(folder, 'journal-bin')];
  mkdirSync(binFolder, { recursive: true });
  writeFileSync(file, '');
  for (const name of ['journalctl', 'systemctl']) {
    const [node, program, journal] = [process.execPath, PROGRAM, file].map(quoteShell);
    writeFileSync(join(binFolder, name), `#!/bin/sh\nAERIE_FAKE_JOURNAL=${journal} exec ${node} ${program} ${name} "$@"\n`);
    chmodSync(join(binFolder, name), 0o755);
  }
  let n = 0;
  return {
    env: { PATH: `${binFolder}${delimiter}${process.env['PATH'] ?? ''}` },
    add(unit, invocation, ...messages) {
      for (const message of messages) {
        n += 1;
        const entry = { __CURSOR: `s=a1;i=${n}`, _SYSTEMD_UNIT: unit, _SYSTEMD_INVOCATION_ID: invocation, MESSAGE: message };
        appendFileSync(file, `${JSON.stringify(entry)}\n`);
      }
    },
  };
}

const HIERARCHY = '/sys/fs/cgroup/systemd';

/** Where cgroups of version 1 may be made: a container of tests as root, not a desktop. */
export function canMakeUnits(): boolean {
  return process.geteuid?.() === 0 && existsSync(join(HIERARCHY, 'cgroup.procs'));
}

/** The process belongs to `system.slice/UNIT`, as a service of systemd does. */
export function putIntoUnit(pid: number, unit: string): void {
  const folder = join(HIERARCHY, 'system.slice', unit);
  mkdirSync(folder, { recursive: true });
  onTestFinished(() => {
    for (const left of readFileSync(join(folder, 'cgroup.procs'), 'utf8').split('\n').filter(Boolean))
      writeFileSync(join(HIERARCHY, 'cgroup.procs'), left);
    for (const path of [folder, join(HIERARCHY, 'system.slice')]) {
      try {
        rmdirSync(path);
      } catch {
        // another test's unit is in it
      }
    }
  });
  writeFileSync(join(folder, 'cgroup.procs'), String(pid));
}
