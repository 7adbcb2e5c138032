import { expect, test } from 'vitest';
import { cacheFolderOf } from './cache-folder.ts';
import { homeFolderOf } from './home-folder.ts';

const unknown = (): string => {
  throw new Error('uv_os_homedir returned ENOENT');
};

test('HOME is the home folder; else what the table of users says; and / for a user whom it does not know', () => {
  expect(homeFolderOf({ HOME: '/home/me' }, unknown)).toBe('/home/me');
  expect(homeFolderOf({}, () => '/root')).toBe('/root');
  expect(homeFolderOf({ HOME: '' }, () => '')).toBe('/');
  expect(homeFolderOf({}, unknown)).toBe('/');
});

test('the cache never lies below the folder where Aerie happens to be called', () => {
  expect(cacheFolderOf({ HOME: '/home/me' })).toBe('/home/me/.cache/aerie');
  expect(cacheFolderOf({ HOME: '/home/me', XDG_CACHE_HOME: '/var/cache' })).toBe('/var/cache/aerie');
  expect(cacheFolderOf({ HOME: '/home/me', XDG_CACHE_HOME: 'cache' })).toBe('/home/me/.cache/aerie');
  expect(cacheFolderOf({ HOME: '/home/me', XDG_CACHE_HOME: '/var/cache', AERIE_CACHE: 'here' })).toBe('here');
});
