/**
 * An Aerie that can be killed: runs one script over ssh, or holds a way to a port, says so on stdout, and stays.
 * `node test/support/hold-wire.mjs TARGET script 'SCRIPT'` · `node test/support/hold-wire.mjs TARGET way PORT`
 */
import { nodeHost } from '../../dist/host/node-host.js';
import { openReach } from '../../dist/machine/ssh/reach.js';
import { openSshWire } from '../../dist/machine/ssh/ssh-wire.js';

const [, , target = '', what = '', given = ''] = process.argv;
const host = nodeHost();
if (what === 'script') {
  void openSshWire(target, host).run({ script: given, timeoutMs: 600_000 });
} else {
  const reach = await openReach({ host, target, address: '127.0.0.1', port: Number(given) });
  while (!reach.isOpen()) await host.clock.sleep(20);
  process.stdout.write(`${reach.baseUrl}\n`);
}
setInterval(() => undefined, 1_000_000);
