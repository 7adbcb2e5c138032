/**
 * A starter that can be killed, over ssh: starts one launch, says on stdout who was started, and stays.
 * `AERIE_SSH=… node test/support/start-over-ssh.mjs '{"target":"gpu-box","launch":{…a DetachedStart…}}'`
 */
import { nodeHost } from '../../dist/host/node-host.js';
import { shellMachine } from '../../dist/machine/shell/shell-machine.js';
import { openSshWire } from '../../dist/machine/ssh/ssh-wire.js';

const { target, launch } = JSON.parse(process.argv[2] ?? '');
const host = nodeHost();
const machine = shellMachine(openSshWire(target, host), { name: target, clock: host.clock });
process.stdout.write(`${JSON.stringify(await machine.start(launch))}\n`);
setInterval(() => undefined, 1_000_000);
