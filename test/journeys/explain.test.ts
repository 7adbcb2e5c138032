/** `aerie explain`: every code has a page, prints it without loading anything heavy, and an unknown one names the nearest. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runExplain } from '../../src/app/explain.ts';
import { ERROR_PAGES, renderErrorPage } from '../../src/base/error-pages.ts';
import { AerieError, ERRORS, type ErrorCode } from '../../src/base/errors.ts';
import { renderErrorText } from '../../src/cli/render/error-text.ts';
import { makeProject } from '../support/cli.ts';
import { openDoor } from '../support/cli-door.ts';
import { LIST_MODULES, modulesIn } from '../support/list-modules.ts';

const door = openDoor();

const CODES = Object.keys(ERRORS) as ErrorCode[];
const PAGES = join(import.meta.dirname, '../../docs/errors');

test('each code has a page of whole sentences, and docs/errors holds just these', () => {
  expect(Object.keys(ERROR_PAGES).sort()).toEqual([...CODES].sort());
  expect(readdirSync(PAGES).sort()).toEqual([...CODES.map((code) => `${code}.md`), 'README.md'].sort());
  for (const code of CODES) {
    const page = renderErrorPage(code);
    expect(readFileSync(join(PAGES, `${code}.md`), 'utf8')).toBe(`${page}\n`);
    for (const text of Object.values(ERROR_PAGES[code])) expect(text).toMatch(/^\S[\s\S]{15,}\.$/);
  }
});

test('a page is printed by its code, with what to do, and loads tables alone', async () => {
  const result = await makeProject().aerie(['explain', 'disk.full'], { nodeArgs: ['--import', LIST_MODULES] });
  expect(result.code, result.stderr).toBe(0);
  expect(result.stdout).toMatch(/^# disk\.full\n\nThe disk is full\. Exit code 5: stopped early, resumable\./);
  expect(result.stdout).toMatch(/What to do\. Free space/);
  const modules = modulesIn(result.stderr);
  expect(modules.some((url) => url.endsWith('/dist/base/error-pages.js'))).toBe(true);
  const heavy = /\/dist\/(host|ledger|server|engine|programs)\/|node_modules\/(?!@stricli\/core|picocolors)/;
  expect(modules.filter((url) => heavy.test(url))).toEqual([]);
});

test('without a code all are listed, and each of them can be explained', async () => {
  const project = door.through(makeProject());
  const listed = await project.aerie(['explain']);
  expect(listed.code).toBe(0);
  for (const code of CODES) expect(listed.stdout).toContain(`\n${code} `);
  const { pages } = await runExplain({});
  for (const { code, page, title } of pages) {
    expect((await runExplain({ code })).pages.map((explained) => explained.page)).toContain(page);
    expect(page).not.toMatch(/undefined|\[object/);
    expect(page).toContain('**What to do.** ');
    expect(title).not.toMatch(/\.$/);
  }
  const json = await project.aerie(['explain', 'not-json', '--json']);
  expect(json.json().data.pages).toMatchObject([{ code: 'not-json', kind: 'rejection' }]);
});

test('a code that is not known is refused with the nearest one', async () => {
  const project = door.through(makeProject());
  for (const [typed, meant] of [
    ['disk.ful', 'disk.full'],
    ['Server.unreachible', 'server.unreachable'],
  ] as const) {
    const result = await project.aerie(['explain', typed]);
    expect(result.code).toBe(2);
    expect(result.stderr).toContain(`There is no code "${typed}".`);
    expect(result.stderr).toContain(`aerie explain ${meant}`);
  }
  const far = await project.aerie(['explain', 'constructor', '--json']);
  expect(far.json().error).toMatchObject({ code: 'usage.flag', remedy: 'aerie explain   lists all codes' });
});

test('on a terminal an error ends with the command that explains it', () => {
  const error = new AerieError('disk.full', 'Full.', { remedy: 'Free space.' });
  expect(renderErrorText(error, true)).toMatch(/try.*Free space\.\n.*more.* aerie explain disk\.full\n$/);
  expect(renderErrorText(error)).not.toContain('explain');
});
