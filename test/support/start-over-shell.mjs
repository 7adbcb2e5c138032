/**
 * A starter that can be killed, over a shell: starts one launch, says on stdout who was started, and stays.
 * `node test/support/start-over-shell.mjs '{"wire":{"shell":["dash"]},"launch":{…a DetachedStart…}}'`
 */
import { nodeHost } from '../../dist/host/node-host.js';
import { shellMachine } from '../../dist/machine/shell/shell-machine.js';
import { localWire } from './local-wire.mjs';

const { wire, launch } = JSON.parse(process.argv[2] ?? '');
const machine = shellMachine(localWire(wire), { name: 'a shell', clock: nodeHost().clock });
process.stdout.write(`${JSON.stringify(await machine.start(launch))}\n`);
setInterval(() => undefined, 1_000_000);
