/**
 * A worker that mirrors a log until it is killed: `node mirror-on.mjs LOG FOLDER`. The log is on this machine, which is said not
 * to be here; everything else is as it is. Says `mirrors` when it has begun.
 */
import { nodeHost } from '../../dist/host/node-host.js';
import { localMachine } from '../../dist/machine/local/local-machine.js';
import { LogFollower } from '../../dist/server/launch/follow-log.js';
import { LogMirror } from '../../dist/server/launch/mirror-log.js';

const [logPath, folder] = process.argv.slice(2);
const machine = { ...localMachine(nodeHost()), isHere: false, name: 'gpu-box' };
const mirror = new LogMirror({ machine, logPath, folder, server: 's', launch: 1, onTrouble: (text) => console.error(text) });
const follower = new LogFollower(machine, logPath, 'sglang', mirror);
process.stdout.write('mirrors\n');
for (;;) {
  await follower.readOn();
  await new Promise((resolve) => setTimeout(resolve, 1));
}
