import { expect, test } from 'vitest';
import { judgeClient, judgeImage } from './preflight-client.ts';

const asked = (stderr: string, code = 1) => judgeClient('docker', { kind: 'ended', code, stdout: '', stderr });

test('a daemon that is down or forbids it refuses the launch, with the words that say so and what to type', () => {
  expect(asked('Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?')).toMatchObject({
    verdict: 'refused',
    says: expect.stringMatching(/^docker does not answer: docker does not run on that machine \(Cannot connect/),
    remedy: expect.stringContaining('systemctl start docker'),
  });
  expect(asked('permission denied while trying to connect to the Docker daemon socket at unix:///x: dial')).toMatchObject({
    verdict: 'refused',
    remedy: expect.stringContaining('usermod -aG docker'),
  });
});

test('one that is missing refuses it; words that nobody knows refuse nothing', () => {
  expect(asked('sh: 1: docker: not found', 127)).toMatchObject({
    verdict: 'refused',
    says: 'docker is not on the PATH that a command has (sh: 1: docker: not found)',
    remedy: expect.stringContaining('env: { PATH: '),
  });
  expect(asked('something new')).toBeUndefined();
  expect(asked('', 0)).toBeUndefined();
});

test('an image that must be fetched first is said, with what it means', () => {
  const result = { kind: 'ended', code: 1, stdout: '[]', stderr: 'Error response from daemon: No such image: x:1' } as const;
  expect(judgeImage('x:1', 'gpu-box', result)).toMatchObject([
    { verdict: 'warning', says: expect.stringContaining('x:1 is not on gpu-box') },
  ]);
  expect(judgeImage('x:1', 'gpu-box', { ...result, stderr: 'anything else' })).toEqual([]);
});
