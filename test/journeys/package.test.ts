/** What is in the package: all that it needs to run and to be read, and nothing of how it is tested or built. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '../..');

interface Manifest {
  readonly bin: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Manifest;

/** As `npm pack` lists it, asked once; nothing is built, written or fetched. */
let listed: string[] | undefined;
function packed(): string[] {
  listed ??= listPacked();
  return listed;
}

function listPacked(): string[] {
  const args = ['pack', '--dry-run', '--ignore-scripts', '--json', '--offline'];
  const output = execFileSync('npm', args, { cwd: ROOT, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const [list] = JSON.parse(output.slice(output.indexOf('['))) as [{ files: { path: string }[] }];
  return list.files.map(({ path }) => path);
}

test('the package holds programs, types, schemas, examples, pages and the licence, and nothing else', () => {
  const files = packed();
  for (const file of ['LICENSE', 'README.md', 'CHANGELOG.md', 'schemas/run.schema.json', 'examples/quickstart.yaml'])
    expect(files).toContain(file);
  for (const program of ['embedded-engine', 'lookalike-engine', 'fetch-model', 'try-lock', 'try-engine'])
    expect(files).toContain(`dist/programs/${program}.js`);
  expect(files).toContain('docs/errors/disk.full.md');
  const wrong = files.filter(
    (path) => /\.test\.|\.map$|\.ts$|^src\/|^test\/|^scripts\/|\.built$|\/runs\//.test(path) && !path.endsWith('.d.ts'),
  );
  expect(wrong).toEqual([]);
  const places = new Set(files.map((path) => path.split('/')[0]));
  expect([...places].sort()).toEqual(
    [
      'dist',
      'docs',
      'examples',
      'schemas',
      'LICENSE',
      'package.json',
      'README.md',
      'ARCHITECTURE.md',
      'CHANGELOG.md',
      'GLOSSARY.md',
    ].sort(),
  );
});

test('what package.json points to is in the package', () => {
  const files = packed();
  const targets = [
    ...Object.values(manifest.bin),
    ...Object.values(manifest.exports).flatMap((to) => (typeof to === 'string' ? to : Object.values(to))),
  ];
  for (const target of targets) {
    const path = target.replace('./', '');
    if (path.includes('*')) expect(files.some((file) => file.startsWith(path.split('*')[0] ?? ''))).toBe(true);
    else expect(files).toContain(path);
  }
  expect(readFileSync(join(ROOT, manifest.bin['aerie'] ?? ''), 'utf8')).toMatch(/^#!\/usr\/bin\/env node\n/);
});

test('links of the pages that people get lead to pages that they get', () => {
  const files = new Set(packed());
  for (const page of ['README.md', 'docs/errors/README.md', 'ARCHITECTURE.md']) {
    const folder = page.includes('/') ? `${page.slice(0, page.lastIndexOf('/'))}/` : '';
    for (const [, target = ''] of readFileSync(join(ROOT, page), 'utf8').matchAll(/\]\(([^)#:]+)\)/g)) {
      const path = join(folder, target).replace(/\/$/, '');
      expect(existsSync(join(ROOT, path)), `${page} → ${target}`).toBe(true);
      expect(files.has(path) || [...files].some((file) => file.startsWith(`${path}/`)), `${page} → ${target}`).toBe(true);
    }
  }
});
