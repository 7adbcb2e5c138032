/** Servers behind a proxy and with a certificate of one's own: a real proxy, real TLS, names that only the proxy knows. */
import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { makeProject } from '../support/cli.ts';
import { openFrontDoor } from '../support/front-door.ts';
import { startLookalike } from '../support/lookalike-bench.ts';
import { freePort } from '../support/lookalike-project.ts';
import { openProxy } from '../support/proxy.ts';
import { promptStates } from '../support/run-folder.ts';
import { makeSelfSigned } from '../support/self-signed.ts';

function projectOf(attach: string, over: object = {}) {
  const project = makeProject();
  project.writeRows('p.jsonl', [{ prompt: 'one' }, { prompt: 'two' }, { prompt: 'three' }]);
  project.writeRun('run.yaml', {
    ...{ run: 'r', model: 'lookalike', servers: [{ engine: 'vllm', name: 's', attach }] },
    ...{ sampling: { 'max-tokens': 24, seed: 3 }, 'in-flight': 2, partitions: [{ name: 'A', from: 'p.jsonl' }] },
    ...over,
  });
  return project;
}
/** Nothing of the machine that the tests run on. */
const PLAIN = { SSL_CERT_FILE: '', NODE_EXTRA_CA_CERTS: '', NO_PROXY: '', no_proxy: '', http_proxy: '', https_proxy: '' };

test('https through a proxy that asks for a password, with authorities from SSL_CERT_FILE', async () => {
  const lookalike = await startLookalike();
  const tls = makeSelfSigned('gpus.example');
  const door = await openFrontDoor({ to: lookalike.engine.port, tls });
  const proxy = await openProxy({ 'gpus.example:443': door.port }, 'me:pass-of-the-proxy');
  const project = projectOf('https://gpus.example');
  const env = {
    ...PLAIN,
    HTTPS_PROXY: `http://me:pass-of-the-proxy@127.0.0.1:${proxy.port}`,
    SSL_CERT_FILE: project.write('ca.pem', tls.cert),
  };
  const run = await project.aerie(['run', 'run.yaml'], { env });
  expect(run.code, run.stderr).toBe(0);
  expect(promptStates(project.path('runs/r'))).toEqual({ done: 3 });
  expect(new Set(proxy.asked)).toEqual(new Set(['CONNECT gpus.example:443']));
  expect(door.asked).toContain('/v1/chat/completions');
  // The proxy hands on what it cannot read; the server is told nothing of the proxy.
  expect(proxy.headers.join('\n')).not.toContain('/v1/');
  const doctor = await project.aerie(['doctor', 'run.yaml'], { env });
  expect(doctor.stdout).toContain(`s (https://gpus.example) is asked through 127.0.0.1:${proxy.port}, as HTTPS_PROXY says`);
  expect(run.stderr + run.stdout + doctor.stdout + doctor.stderr).not.toContain('pass-of-the-proxy');
  expect(spawnSync('grep', ['-rlaF', 'pass-of-the-proxy', project.path('runs')], { encoding: 'utf8' }).stdout).toBe('');

  const both = {
    ...env,
    SSL_CERT_FILE: project.write('other.pem', makeSelfSigned().cert),
    NODE_EXTRA_CA_CERTS: env.SSL_CERT_FILE,
  };
  expect((await project.aerie(['preview', 'run.yaml'], { env: both })).code).toBe(0);
  const neither = await project.aerie(['preview', 'run.yaml'], { env: { ...both, NODE_EXTRA_CA_CERTS: '' } });
  expect([neither.code, neither.stderr]).toEqual([4, expect.stringContaining('self-signed')]);
  const missing = await project.aerie(['preview', 'run.yaml'], { env: { ...env, SSL_CERT_FILE: '/no/such.pem' } });
  expect([missing.code, missing.stderr]).toEqual([
    4,
    expect.stringContaining('SSL_CERT_FILE names /no/such.pem, which cannot be read'),
  ]);
});

test('plain http is asked of the proxy by whole addresses, and what NO_PROXY names is not', async () => {
  const lookalike = await startLookalike();
  const proxy = await openProxy({ 'gpu-1.example:30000': lookalike.engine.port });
  const project = projectOf('http://gpu-1.example:30000', { patience: '2s' });
  const env = { ...PLAIN, HTTP_PROXY: `127.0.0.1:${proxy.port}` };
  const run = await project.aerie(['run', 'run.yaml'], { env });
  expect(run.code, run.stderr).toBe(0);
  expect(proxy.asked).toContain('POST http://gpu-1.example:30000/v1/chat/completions');
  const before = proxy.asked.length;
  const direct = await project.aerie(['preview', 'run.yaml'], { env: { ...env, NO_PROXY: '.example' } });
  expect(direct.code, direct.stderr).toBe(4); // there is no such host
  expect(proxy.asked.length).toBe(before);
});

test('a proxy that refuses, or is not there, is named without its password', async () => {
  const proxy = await openProxy({}, 'me:right');
  const project = projectOf('https://gpus.example', { patience: '2s' });
  const through = (port: number) => ({ ...PLAIN, HTTPS_PROXY: `http://me:wrong-password@127.0.0.1:${port}` });
  const refused = await project.aerie(['run', 'run.yaml'], { env: through(proxy.port) });
  expect(refused.code, refused.stderr).toBe(4);
  expect(refused.stderr).toContain(`the proxy 127.0.0.1:${proxy.port} answered 407 to the way to gpus.example:443`);
  expect(refused.stderr).toContain('NO_PROXY');
  const port = await freePort();
  const gone = await project.aerie(['run', 'run.yaml'], { env: through(port) });
  expect(gone.code, gone.stderr).toBe(4);
  expect(gone.stderr).toContain(`the proxy 127.0.0.1:${port} cannot be reached (ECONNREFUSED)`);
  expect(refused.stderr + gone.stderr).not.toContain('wrong-password');

  const plain = projectOf('http://gpu-1.example:30000', { patience: '2s' });
  const env = { ...PLAIN, HTTP_PROXY: `http://me:wrong-password@127.0.0.1:${proxy.port}` };
  const unknown = await plain.aerie(['run', 'run.yaml'], { env });
  expect([unknown.code, unknown.stderr]).toEqual([4, expect.stringContaining(`the proxy 127.0.0.1:${proxy.port} answered 407`)]);
  const away = await plain.aerie(['run', 'run.yaml'], { env: { ...env, HTTP_PROXY: `http://127.0.0.1:${port}` } });
  expect([away.code, away.stderr]).toEqual([
    4,
    expect.stringContaining(`the proxy 127.0.0.1:${port} cannot be reached (ECONNREFUSED)`),
  ]);
});

test('this machine is never asked through a proxy', async () => {
  const lookalike = await startLookalike();
  const project = projectOf(`http://127.0.0.1:${lookalike.engine.port}`);
  const dead = `http://127.0.0.1:${await freePort()}`;
  const run = await project.aerie(['run', 'run.yaml'], {
    env: { ...PLAIN, HTTP_PROXY: dead, http_proxy: dead, HTTPS_PROXY: dead },
  });
  expect(run.code, run.stderr).toBe(0);
});
