import { expect, test } from 'vitest';
import { isProhibition, refusedForward } from './forwarding.ts';

test('a machine that forwards nothing is told from a port where nobody listens, and from what passes', () => {
  const lines = {
    'channel 2: open failed: administratively prohibited: open failed': true,
    'channel 13: open failed: administratively prohibited: port forwarding is disabled': true,
    'channel 2: open failed: unknown channel type: unsupported channel type': true,
    'channel 2: open failed: connect failed: Connection refused': false,
    'channel 2: open failed: connect failed: administratively prohibited': false, // the machine chooses these words
    'channel 2: open failed: resource shortage: ': false,
    'channel 2: chan_shutdown_write: shutdown() failed for fd 8': false,
    'mux_client_request_session: session request failed: Session open refused by peer': false,
    'Everything is administratively prohibited here.': false, // a banner
  };
  for (const [line, isOne] of Object.entries(lines)) expect([line, isProhibition(line)]).toEqual([line, isOne]);
});

test('what is said of it has the words of the machine on one line, the settings by name, and what else works', () => {
  const said = `channel 2: open failed: administratively prohibited: \u001b[31mno\u0007${'x'.repeat(500)}`;
  const refused = refusedForward({ name: 'gpu-box', address: '::1', port: 30_000, said, tries: 3 });
  expect(refused.code).toBe('machine.refused');
  expect(refused.detail.because).toMatch(/^ssh was turned away 3 times of 3: channel 2: open failed: .* \[31mno x+$/);
  expect(refused.detail.because?.length).toBeLessThan(260);
  for (const word of [
    'AllowTcpForwarding',
    'DisableForwarding',
    'PermitOpen',
    '[::1]:30000',
    'attach: http://HOST:30000',
    'gpu-box itself',
  ])
    expect(refused.detail.remedy).toContain(word);
});
