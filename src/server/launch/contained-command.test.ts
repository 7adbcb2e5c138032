import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { quoteShell } from '../../base/quote-shell.ts';
import { splitShellWords } from '../../base/shell-words.ts';
import { containCommand } from './contained-command.ts';

const ASKED = { marker: 's-1-abc', port: 8000, envNames: ['HF_TOKEN'] };
const KNOWN = '--label aerie.launch=s-1-abc --env AERIE_LAUNCH --env HF_TOKEN';
const PORT = '--publish 127.0.0.1:8000:8000';
const STEP = '--job-name=s-1-abc';
const ONE = '--nodes=1 --ntasks=1 --unbuffered --kill-on-bad-exit';

test.each<[string, string, string, string | undefined]>([
  ['python3 -m sglang.launch_server', 'python3 -m sglang.launch_server', '127.0.0.1', undefined],
  ['docker run IMG python3 -m x', `docker run ${KNOWN} ${PORT} IMG python3 -m x`, '0.0.0.0', 'docker'],
  ['docker run --network host IMG x', `docker run ${KNOWN} --network host IMG x`, '127.0.0.1', 'docker'],
  ['docker run -p 8000:8000 IMG x', `docker run ${KNOWN} -p 8000:8000 IMG x`, '0.0.0.0', 'docker'],
  ['docker run -p 9000:9000 --rm IMG --rm', `docker run ${KNOWN} ${PORT} -p 9000:9000  IMG --rm`, '0.0.0.0', 'docker'],
  [
    'A=b sudo -E docker --context x run IMG x',
    `A=b sudo --preserve-env=AERIE_LAUNCH,HF_TOKEN -E docker --context x run ${KNOWN} ${PORT} IMG x`,
    '0.0.0.0',
    'A=b sudo -n -E docker --context x',
  ],
  ['podman run -v $HOME:/h IMG x', `podman run ${KNOWN} ${PORT} -v $HOME:/h IMG x`, '0.0.0.0', 'podman'],
])('%s', (command, expected, host, control) => {
  const containment = control === undefined ? undefined : { kind: 'container', control };
  expect(containCommand(command, ASKED)).toEqual({ command: expected, host, containment });
});

test.each<[string, string]>([
  ['srun --gpus=8 x', `srun ${STEP} ${ONE} --gpus=8 x`],
  ['srun -N1 -n1 -u -K x', `srun ${STEP} -N1 -n1 -u -K x`],
  ['srun --export=A,B x', `srun ${STEP} ${ONE} --export=A,B,AERIE_LAUNCH,HF_TOKEN x`],
  ['srun --export "A,$B" x', `srun ${STEP} ${ONE} --export "A,$B",AERIE_LAUNCH,HF_TOKEN x`],
  ['srun --export NONE x', `srun ${STEP} ${ONE} --export=AERIE_LAUNCH,HF_TOKEN x`],
])('%s', (command, expected) => {
  expect(containCommand(command, ASKED)).toEqual({ command: expected, host: '127.0.0.1', containment: { kind: 'step' } });
});

/** Options as people write them, and a program behind them. */
const option = fc.constantFrom(
  '--rm',
  '--gpus all',
  '-v "$HOME/m x":/m',
  '-e A',
  '-p9000:9000',
  "--name 'a b'",
  '--ipc=host',
  '-i',
);
const word = fc.string().filter((text) => !text.includes('\0'));

test('a shell gives docker the words of the person, in their order, and those of Aerie before them', () => {
  fc.assert(
    fc.property(fc.array(option), fc.array(word, { minLength: 1 }), (options, program) => {
      const quoted = program.map(quoteShell).join(' ');
      const { command } = containCommand(`docker run ${options.join(' ')} IMG ${quoted}`, ASKED);
      const script = `docker() { printf '%s\\0' "$@"; }; HOME=/h; ${command}`;
      const got = spawnSync('sh', ['-c', script], { encoding: 'utf8' }).stdout.split('\0').slice(0, -1);
      const kept = options.filter((one) => one !== '--rm').join(' ');
      const expected = spawnSync('sh', ['-c', `HOME=/h; printf '%s\\0' x ${kept} IMG ${quoted}`], { encoding: 'utf8' });
      expect(got).toEqual(['run', ...`${KNOWN} ${PORT}`.split(' '), ...expected.stdout.split('\0').slice(1, -1)]);
    }),
  );
});

test('what is put in can be read again', () => {
  expect(splitShellWords(containCommand('docker run IMG x', ASKED).command)?.every(({ isPlain }) => isPlain)).toBe(true);
});
