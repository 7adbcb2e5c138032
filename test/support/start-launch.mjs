/**
 * A starter that can be killed: starts one launch on this machine, says on stdout who was started, and stays.
 * `node test/support/start-launch.mjs '{…a DetachedStart…}' [end]`; with `end` it ends by itself instead.
 */
import { nodeHost } from '../../dist/host/node-host.js';
import { localMachine } from '../../dist/machine/local/local-machine.js';

const [, , launch = '', then = 'stay'] = process.argv;
const identity = await localMachine(nodeHost()).start(JSON.parse(launch));
process.stdout.write(`${JSON.stringify(identity)}\n`);
if (then === 'stay') setInterval(() => undefined, 1_000_000);
