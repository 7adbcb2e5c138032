/** A mirror after anything that can happen to it and to the log: each launch's bytes, once, without a gap. */
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { followMirrored } from '../../../test/support/mirrored-log.ts';
import { runs } from '../../../test/support/property-runs.ts';
import { findMirror } from './mirror-place.ts';

type Step =
  | { readonly do: 'append'; readonly bytes: Uint8Array }
  | { readonly do: 'look' | 'restart' | 'launch' | 'unwritable' | 'writable' }
  /** A kill in mid-append, or a power cut: the mirror ends somewhere, with zeros behind it or not. */
  | { readonly do: 'tear'; readonly share: number; readonly zeros: number };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('append' as const), bytes: fc.uint8Array({ min: 1, maxLength: 3_000 }) }) },
  {
    weight: 6,
    arbitrary: fc.record({ do: fc.constantFrom('look' as const, 'look' as const, 'restart' as const, 'launch' as const) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('unwritable' as const, 'writable' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('tear' as const),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
      zeros: fc.nat(500),
    }),
  },
);

test('after any appends, looks, restarts, launches, tears and failures: each launch’s bytes, once, without a gap', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const root = mkdtempSync(join(tmpdir(), 'aerie-mirror-'));
      try {
        await play(root, steps);
      } finally {
        rmSync(root, { recursive: true });
      }
    }),
    { numRuns: runs(100) },
  );
}, 120_000);

async function play(root: string, steps: readonly Step[]): Promise<void> {
  const there = join(root, 'there.log');
  const here = join(root, 'logs', 's.log');
  /** Whatever lies in the mirror's way while it cannot be written. */
  const aside = join(root, 'aside');
  let isBlocked = false;
  let launch = 1;
  let text = Buffer.alloc(0);
  const ended: Buffer[] = [];
  const open = () => followMirrored({ logPath: there, folder: root, launch });
  const unblock = () => {
    if (!isBlocked) return;
    isBlocked = false;
    rmSync(join(root, 'logs'));
    renameSync(aside, join(root, 'logs'));
  };
  mkdirSync(join(root, 'logs'));
  writeFileSync(there, '');
  let follower = open();
  const expectWhole = async () => {
    unblock();
    await follower.readOn();
    if (text.length > 0) expect(readFileSync(here).equals(text)).toBe(true);
  };
  for (const one of steps) {
    switch (one.do) {
      case 'append':
        text = Buffer.concat([text, one.bytes]);
        appendFileSync(there, one.bytes);
        break;
      case 'look':
        await follower.readOn();
        break;
      case 'restart':
        follower = open();
        break;
      case 'launch':
        await expectWhole();
        ended.push(text);
        launch += 1;
        text = Buffer.alloc(0);
        writeFileSync(there, '');
        follower = open();
        break;
      case 'unwritable':
        if (isBlocked) break;
        isBlocked = true;
        renameSync(join(root, 'logs'), aside);
        writeFileSync(join(root, 'logs'), 'no folder');
        break;
      case 'writable':
        unblock();
        break;
      case 'tear':
        // Only what this launch has mirrored: a tear of a finished one is nobody's to mend.
        if (isBlocked || !existsSync(here) || (await findMirror(root, 's', launch)) !== here) break;
        truncateSync(here, Math.floor(one.share * statSync(here).size));
        truncateSync(here, statSync(here).size + one.zeros);
        follower = open();
        break;
    }
  }
  await expectWhole();
  for (const [at, bytes] of ended.entries()) {
    if (bytes.length === 0) continue;
    expect(readFileSync(await mirrorThat(root, at + 1)).equals(bytes)).toBe(true);
  }
  expect(readdirSync(join(root, 'logs')).filter((name) => name.includes('cut'))).toEqual([]);
}

async function mirrorThat(folder: string, launch: number): Promise<string> {
  const found = await findMirror(folder, 's', launch);
  if (found === undefined) throw new Error(`there is no mirror of launch ${launch}`);
  return found;
}
