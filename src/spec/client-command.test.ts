import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { quoteShell } from '../base/quote-shell.ts';
import { hasSwitch, optionOf, readClientCommand } from './client-command.ts';

const read = (command: string) => {
  const client = readClientCommand(command);
  if (client === undefined || client.kind === 'unreadable') return client?.kind;
  const options = client.options.map(({ name, value }) => (value === undefined ? name : `${name}=${value}`));
  return [client.client, client.before, options.join(' '), client.rest.join(' ')];
};

describe('a command that is a client', () => {
  test.each<[string, readonly string[]]>([
    ['docker run --gpus all IMG python3 -m x', ['docker run', 'docker']],
    ['sudo docker run IMG a', ['docker run', 'sudo docker']],
    [
      'A=b sudo -E -u root /usr/bin/docker --context gpu container run IMG a',
      ['docker run', 'A=b sudo -E -u root /usr/bin/docker --context gpu'],
    ],
    ['podman run IMG a', ['podman run', 'podman']],
    ['env A=b srun python3 -m x', ['srun', 'env A=b srun']],
  ])('%s', (command, [client, before]) => {
    expect(read(command)?.slice(0, 2)).toEqual([client, before]);
  });

  test.each<[string, string, string]>([
    ['docker run --gpus all --rm -v $HOME/m:/m IMG python3 -m x --tp 8', 'gpus=all rm v=$HOME/m:/m', 'IMG python3 -m x --tp 8'],
    ['docker run -it -p8000:8000 -e A --label=a=b IMG -d', 'interactive tty publish=8000:8000 env=A label=a=b', 'IMG -d'],
    ['docker run -dp 1:2 --detach=false -- IMG x', 'detach publish=1:2 detach=false', 'IMG x'],
    [
      'srun -N2 -n 4 -K --gpus=8 --export A,B -pgpu python3 x -N 9',
      'nodes=2 ntasks=4 kill-on-bad-exit gpus=8 export=A,B p=gpu',
      'python3 x -N 9',
    ],
    ['srun --kill-on-bad-exit=1 -K0 -u --mpi none x', 'kill-on-bad-exit=1 kill-on-bad-exit=0 unbuffered mpi=none', 'x'],
    ['docker run', '', ''],
  ])('%s has its options apart from the program', (command, options, rest) => {
    expect(read(command)?.slice(2)).toEqual([options, rest]);
  });

  test.each(['python3 -m sglang.launch_server', 'vllm serve', '', './docker-run.sh', 'docker exec x y', 'docker compose run x'])(
    '%j is none',
    (command) => expect(read(command)).toBe(command.includes('compose') ? 'unreadable' : undefined),
  );

  test.each([
    'cd /x && docker run IMG a',
    `bash -lc 'docker run IMG a'`,
    'docker run IMG a | tee log',
    'time srun a',
    'docker run "IMG',
    'nice -n 5 podman run IMG',
    '$DOCKER run; docker run IMG a',
  ])('%s cannot be read, and that is said', (command) => expect(read(command)).toBe('unreadable'));

  test('a switch that is false is off', () => {
    const client = readClientCommand('docker run --tty=false -d IMG');
    if (client?.kind !== 'container') throw new Error('not read');
    expect([hasSwitch(client, 'tty'), hasSwitch(client, 'detach'), optionOf(client, 'x')]).toEqual([false, true, undefined]);
  });

  test('words of the program are never taken for options, whatever they are', () => {
    const word = fc.oneof(fc.constantFrom('-d', '--network=none', '-t', '--', 'run', 'docker'), fc.string({ minLength: 1 }));
    fc.assert(
      fc.property(fc.array(word), (words) => {
        if (words.join('').includes('\0')) return;
        const client = readClientCommand(`docker run --rm IMG ${words.map(quoteShell).join(' ')}`);
        expect(client).toMatchObject({ kind: 'container', rest: ['IMG', ...words] });
        expect(client).toHaveProperty('options.length', 1);
      }),
    );
  });
});
