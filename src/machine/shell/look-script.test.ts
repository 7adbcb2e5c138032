/** What a look finds in every shell that is here, with grep and without, and what never leaves the machine. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { makeBarePath, shellsHere } from '../../../test/support/shells.ts';
import { parseFrames, renderNonce } from './frames.ts';
import { AROUND, parseCarriers, parseLook, renderLook } from './look-script.ts';

const NONCE = renderNonce(new Uint8Array([1, 2, 3, 4, 5]));
const SECRET = 'hf_secret-of-another-process';

async function sleeper(env: Readonly<Record<string, string>>): Promise<number> {
  const child = spawn('sleep', ['1000'], { env: { PATH: process.env['PATH'], HF_TOKEN: SECRET, ...env }, stdio: 'ignore' });
  await once(child, 'spawn');
  onTestFinished(() => void child.kill('SIGKILL'));
  return child.pid ?? 0;
}

function pathWithoutGrep(): string {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-bare-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return makeBarePath(folder);
}

describe.runIf(process.platform === 'linux').each(shellsHere())('%s', (_, [file = 'sh', ...args]) => {
  test.each(['with grep', 'without grep'])(
    'finds who carries the marker, %s, and tells nothing else of an environment',
    async (how) => {
      const marker = `look-test-${process.pid}-${how.replace(' ', '-')}`;
      const carrier = await sleeper({ AERIE_LAUNCH: marker });
      const others = [
        await sleeper({ AERIE_LAUNCH: `${marker}x` }),
        await sleeper({ OTHER: `AERIE_LAUNCH=${marker}` }),
        await sleeper({ XAERIE_LAUNCH: marker }),
      ];
      const program = spawnSync('sh', ['-c', `command -v ${file}`], { encoding: 'utf8' }).stdout.trim();
      const PATH = how === 'with grep' ? process.env['PATH'] : pathWithoutGrep();
      const script = renderLook({ marker, pid: carrier, statusPath: undefined }, NONCE);
      const { stdout } = spawnSync(program, [...args, '-c', 'eval "$(cat)"'], {
        input: script,
        env: { PATH, HOME: '/nowhere' },
        maxBuffer: 1e8,
      });
      const frames = parseFrames(stdout, NONCE);
      const found = parseCarriers(frames).map(({ pid }) => pid);
      expect(found).toContain(carrier);
      for (const other of others) expect(found).not.toContain(other);
      expect(stdout.toString('latin1')).not.toContain(SECRET);
    },
  );

  test('around a process: its session and who descends from it, and session 0 is none', () => {
    const around = (rows: string, pid: number) => {
      const script = `${AROUND}\naerie_rows='${rows}'\naerie_around ${pid}\necho $aerie_in`;
      return spawnSync(file, [...args, '-c', script], { encoding: 'utf8' }).stdout.trim();
    };
    const rows = '1:0:0:S 10:1:0:S 11:1:0:S 12:10:0:S 20:1:20:S 21:1:20:S 22:21:22:S 23:1:23:S';
    expect(around(rows, 10)).toBe('10 12');
    expect(around(rows, 20)).toBe('20 21 22');
  });
});

test('a machine without /proc, and one whose table could not be read, know of nobody: not that nobody is there', () => {
  const identity = { pid: 7, startTicks: 1, bootId: 'b', command: '' };
  const frames = (more: Record<string, string>) =>
    new Map(Object.entries({ boot: 'b', rows: ' 1:0:1:S', carriers: '', ...more }));
  expect(parseLook(frames({ boot: '', rows: '' }), identity).main).toBe('unknown');
  expect(parseLook(frames({ rows: '' }), identity).main).toBe('unknown');
  expect(parseLook(frames({}), identity).main).toBe('gone');
});
