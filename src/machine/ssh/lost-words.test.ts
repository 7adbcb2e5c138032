import { expect, test } from 'vitest';
import { explainLost } from './lost-words.ts';

/** As OpenSSH 9 writes them. */
const FOR_GOOD = [
  'root@10.0.0.7: Permission denied (publickey,password).',
  'Host key verification failed.',
  'No ED25519 host key is known for gpu-box and you have requested strict checking.\nHost key verification failed.',
  'Received disconnect from 10.0.0.7 port 22:2: Too many authentication failures',
  'Unable to negotiate with 10.0.0.7 port 22: no matching host key type found. Their offer: ssh-rsa',
  '/home/me/.ssh/config: line 3: Bad configuration option: hostnam\n/home/me/.ssh/config: terminating, 1 bad configuration options',
  'Bad owner or permissions on /home/me/.ssh/config',
  'No user exists for uid 12345',
  'ssh: Could not resolve hostname gpu-bx: Name or service not known',
  'Permission denied (publickey).\nConnection closed by UNKNOWN port 65535', // at the jump host
];
const PASSING = [
  'ssh: connect to host 10.0.0.7 port 22: Connection refused',
  'ssh: connect to host 10.0.0.7 port 22: Connection timed out',
  'ssh: connect to host 10.0.0.7 port 22: No route to host',
  'Connection timed out during banner exchange',
  'Connection closed by 10.0.0.7 port 22',
  'kex_exchange_identification: read: Connection reset by peer',
  'Timeout, server gpu-box not responding.',
  'client_loop: send disconnect: Broken pipe',
  'ssh: Could not resolve hostname gpu-box: Temporary failure in name resolution',
  'bash: /opt/x: Permission denied',
];

test('what waiting cannot help is told from what passes', () => {
  for (const words of FOR_GOOD) expect([words, explainLost(words, 255, false).isConfiguration]).toEqual([words, true]);
  for (const words of PASSING) expect([words, explainLost(words, 255, false).isConfiguration]).toEqual([words, false]);
});

test('once a script runs, nothing it says is taken for a word of ssh', () => {
  for (const words of FOR_GOOD) expect(explainLost(words, 255, true).isConfiguration).toBe(false);
});

test("the reason is ssh's last words, short and on one line, without what it says besides", () => {
  const said = [
    'mux_client_request_session: session request failed: Session open refused by peer',
    'ControlSocket /tmp/aerie-ssh-0/x already exists, disabling multiplexing',
    '@@@@@@@@@@@@@@@@@@@@@@',
    '\u001b[31mssh: connect to host gpu-box port 22:\u0007 Connection refused\r',
    '',
  ];
  expect(explainLost(said.join('\n'), 255, false).because).toBe('[31mssh: connect to host gpu-box port 22:  Connection refused');
  expect(explainLost('x'.repeat(5_000), 255, false).because).toHaveLength(300);
  expect(explainLost('', 255, false).because).toBe('the connection was lost, and ssh has not said why');
});

test('a login that runs something else than the command is no outage', () => {
  expect(explainLost('', 1, false)).toEqual({
    because: 'it runs no sh: the command ended with 1',
    isConfiguration: true,
    lacks: 'sh',
  });
  expect(explainLost('bash: line 1: exec: sh: not found', 127, false)).toEqual({
    because: 'it runs no sh: the command ended with 127, and said: bash: line 1: exec: sh: not found',
    isConfiguration: true,
    lacks: 'sh',
  });
  expect(explainLost('', undefined, false).isConfiguration).toBe(false);
});
