/** Frames as a script writes them, with content that would like to be one. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { shellsHere } from '../../../test/support/shells.ts';
import { frameFunctions, parseFrames, renderNonce } from './frames.ts';

const nonceOf = (...bytes: number[]) => renderNonce(new Uint8Array(bytes));

test('a nonce is a way to the root, and another one for other bits', () => {
  expect(realpathSync(`${nonceOf(1, 2, 3, 250, 251)}/tmp`)).toBe(realpathSync('/tmp'));
  expect(nonceOf(1, 2, 3, 4, 5)).not.toBe(nonceOf(1, 2, 3, 4, 6));
});

test('whatever a thing holds, it stays in its frame', () => {
  const nonce = nonceOf(7, 7, 7, 7, 7);
  const piece = fc.constantFrom('\n', '==> ', ' <==\n', '/proc/1/stat', nonceOf(7, 7, 7, 7, 6), 'a', '\0', ' ');
  const content = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''));
  fc.assert(
    fc.property(fc.array(content, { maxLength: 5 }), (contents) => {
      const written = contents.map((text, nth) => `\n==> ${nonce}/file/${nth} <==\n${text}`).join('');
      const expected = contents.map((text, nth) => [`/file/${nth}`, text]);
      expect([...parseFrames(new TextEncoder().encode(written), nonce)]).toEqual(expected);
    }),
  );
});

test.each(shellsHere())(
  '%s writes them: things said, files of any bytes, files that are not there',
  (_, [file = 'sh', ...args]) => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'aerie-frames-')));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const nonce = nonceOf(9, 8, 7, 6, 5);
    const bytes = '\n==> /proc/1/stat <==\n\0no newline at the end';
    writeFileSync(`${folder}/a`, bytes);
    writeFileSync(`${folder}/b`, '');
    const at = `"$aerie_nonce${folder}`;
    const script = `${frameFunctions(nonce)}\naerie_say 'a thing' 'said'\naerie_show ${at}/a" ${at}/none" ${at}/b"\naerie_say last ''`;
    const { stdout } = spawnSync(file, [...args, '-c', script]);
    const frames = parseFrames(stdout, nonce);
    expect([...frames]).toEqual([
      ['a thing', 'said'],
      [`${folder}/a`, bytes],
      [`${folder}/b`, ''],
      ['last', ''],
    ]);
  },
);
