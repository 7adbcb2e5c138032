import { expect, test } from 'vitest';
import { type Lack, whatToTry } from './what-to-try.ts';

const BOX = { program: 'ssh', target: 'ssh://me@gpu-box:2222' };
const typed = (lack: Lack | undefined, names = BOX) => /^ {2}(.+)$/m.exec(whatToTry(lack, names))?.[1];

test('what is typed meets what was met: with the program, the user and the port that Aerie used', () => {
  expect(typed(undefined)).toBe('ssh ssh://me@gpu-box:2222 true');
  expect(typed(undefined, { program: '/opt/my ssh', target: "it's" })).toBe(`'/opt/my ssh' 'it'\\''s' true`);
});

test('no advice to log in where ssh is not there, where a login runs no sh, or where a short command passes', () => {
  expect(typed('ssh')).toBe('ssh -V');
  expect(whatToTry('ssh', BOX)).toContain('openssh-client');
  const other = whatToTry('ssh', { ...BOX, program: '/opt/ssh' });
  expect(other).toMatch(/^ {2}\/opt\/ssh -V$/m);
  expect(other).toMatch(/AERIE_SSH names it/);
  expect(other).not.toContain('openssh-client');
  expect(typed('sh')).toBe(`ssh ssh://me@gpu-box:2222 "exec sh -c 'echo sh works'"`);
  expect(typed('rest')).toMatch(/^journalctl /);
});
