/**
 * A starter that can be killed, over ssh: starts one launch, says on stdout who was started, and stays.
 * `AERIE_SSH=… node test/support/start-over-ssh.mjs '{"target":"gpu-box","launch":{…a DetachedStart…}}'`
 */
import { nodeHost } from '../../dist/host/node-host.js';
import { openSshMachine } from '../../dist/machine/ssh/open-ssh-machine.js';

const { target, launch } = JSON.parse(process.argv[2] ?? '');
const { signal } = new AbortController();
const machine = openSshMachine({ target, host: nodeHost(), patienceMs: 60_000, signal });
process.stdout.write(`${JSON.stringify(await machine.start(launch))}\n`);
setInterval(() => undefined, 1_000_000);
