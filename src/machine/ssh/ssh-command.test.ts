import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { nodeHost } from '../../host/node-host.ts';
import { REMOTE_COMMAND } from './remote-shell.ts';
import { nameOfTarget, openSharing, renderSsh } from './ssh-command.ts';

test('a machine is called as people know it', () => {
  const names = {
    'gpu-box': 'gpu-box',
    'root@gpu-box': 'gpu-box',
    'ssh://gpu-box': 'gpu-box',
    'ssh://root@gpu-box:2222': 'gpu-box',
    'ssh://me@corp@gpu-box': 'gpu-box',
    'ssh://root@[fe80::1]:22': 'fe80::1',
    'fe80::1': 'fe80::1',
  };
  for (const [target, name] of Object.entries(names)) expect([target, nameOfTarget(target)]).toEqual([target, name]);
});

test('the target stands last but one, behind the end of the options', () => {
  const host = { ...nodeHost(), env: {} };
  const { file, args } = renderSsh(host, 'gpu-box', ['ControlPath=none'], 'true');
  expect(file).toBe('ssh');
  expect(args.slice(-3)).toEqual(['--', 'gpu-box', 'true']);
  expect(args).toContain('BatchMode=yes');
  expect(args.filter((arg) => arg === '-F' || arg === '-i')).toEqual([]);
  expect(renderSsh({ ...host, env: { AERIE_SSH: '/opt/ssh' } }, 'gpu-box', [], 'true').file).toBe('/opt/ssh');
});

test('the fixed text holds nothing that a login shell could take for its own', () => {
  const [, text = ''] = /^exec sh -c '(.*)'$/.exec(REMOTE_COMMAND) ?? [];
  expect(text).toMatch(/^[^'\\!\n]+$/);
});

test('sockets lie where only this user can enter, or nowhere', () => {
  const folder = mkdtempSync(join(tmpdir(), 'a-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const mine = `aerie-ssh-${process.getuid?.()}`;
  const sharing = openSharing([folder]);
  expect(sharing).toEqual({ kind: 'shared', folder: join(folder, mine) });
  expect(statSync(join(folder, mine)).mode & 0o777).toBe(0o700);
  expect(openSharing([folder])).toEqual(sharing);
  chmodSync(join(folder, mine), 0o750);
  expect(openSharing([folder])).toEqual({ kind: 'none' });

  const planted = join(folder, 'planted');
  mkdirSync(planted);
  symlinkSync(folder, join(planted, mine));
  const long = join(folder, 'x'.repeat(40));
  mkdirSync(long);
  const other = join(folder, 'a %d');
  mkdirSync(other);
  for (const place of [planted, long, other, join(folder, 'absent')]) expect(openSharing([place])).toEqual({ kind: 'none' });
  expect(openSharing([long, planted, '/tmp'])).toEqual({ kind: 'shared', folder: `/tmp/${mine}` });
});
