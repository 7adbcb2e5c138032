/** The proxy of each address, and what doctor says of it. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { proxyFor } from '../../host/proxy-for.ts';
import { judgeProxy } from './judge-proxy.ts';

const ENV = { HTTPS_PROXY: 'http://me:p%40ss@proxy.example:3128', http_proxy: 'plain.example:8080' };
const nameOf = (address: string, env: Record<string, string>) => {
  const choice = proxyFor(address, env);
  return choice.kind === 'proxy' ? choice.proxy.name : choice.kind;
};

test.each([
  ['https://gpus.example/team', {}, 'proxy.example:3128'],
  ['http://gpu-1:30000', {}, 'plain.example:8080'],
  ['http://gpu-1:30000', { http_proxy: '' }, 'direct'],
  ['http://gpu-1:30000', { HTTP_PROXY: 'upper.example', http_proxy: '' }, 'upper.example'],
  ['https://gpus.example', { NO_PROXY: 'example' }, 'direct'],
  ['https://gpus.example', { NO_PROXY: 'x, .gpus.example' }, 'direct'],
  ['https://gpus.example', { NO_PROXY: 'us.example' }, 'proxy.example:3128'],
  ['https://gpus.example', { NO_PROXY: 'gpus.example:443' }, 'direct'],
  ['https://gpus.example:8443', { NO_PROXY: 'gpus.example:443' }, 'proxy.example:3128'],
  ['https://gpus.example', { NO_PROXY: 'gpus.example', no_proxy: 'other' }, 'proxy.example:3128'],
  ['https://gpus.example', { NO_PROXY: '*' }, 'direct'],
  ['https://[fd00::1]:1', { NO_PROXY: 'fd00::1' }, 'proxy.example:3128'],
  ['https://[fd00::1]:1', { NO_PROXY: '[fd00::1]' }, 'direct'],
  ['https://gpus.example', { HTTPS_PROXY: 'socks5://proxy:1080' }, 'wrong'],
  ['https://gpus.example', { HTTPS_PROXY: 'http://' }, 'wrong'],
])('%s with %j: %s', (address, env, expected) => {
  expect(nameOf(address, { ...ENV, ...env })).toBe(expected);
});

test('never for this machine, whatever the environment holds', () => {
  const own = fc.constantFrom(
    'http://127.0.0.1:1',
    'http://127.8.8.8',
    'https://localhost:1',
    'http://[::1]:1',
    'http://a.localhost',
  );
  fc.assert(
    fc.property(own, fc.string(), fc.string(), (address, proxy, except) => {
      expect(proxyFor(address, { http_proxy: proxy, HTTPS_PROXY: proxy, NO_PROXY: except }).kind).toBe('direct');
    }),
  );
});

test('user and password are used and never shown', () => {
  const choice = proxyFor('https://gpus.example', ENV);
  expect(choice).toMatchObject({ proxy: { authorization: `Basic ${Buffer.from('me:p@ss').toString('base64')}` } });
  const [check] = judgeProxy('s', 'https://gpus.example', choice);
  expect(check).toMatchObject({
    verdict: 'ok',
    says: 's (https://gpus.example) is asked through proxy.example:3128, as HTTPS_PROXY says',
  });
  expect(JSON.stringify(check)).not.toMatch(/me:|p%40ss|p@ss/);
});

test('any text in the variables is direct, a proxy, or said to be none', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (proxy, except) => {
      expect(['direct', 'proxy', 'wrong']).toContain(
        proxyFor('https://gpus.example', { HTTPS_PROXY: proxy, NO_PROXY: except }).kind,
      );
    }),
  );
});
