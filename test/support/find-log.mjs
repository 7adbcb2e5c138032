/** `node find-log.mjs PORT`: where the log of who listens there is, as the user who asks sees it. JSON on stdout. */
import { nodeHost } from '../../dist/host/node-host.js';
import { localMachine } from '../../dist/machine/local/local-machine.js';
import { findServerLog } from '../../dist/server/attach/find-log.js';

process.stdout.write(JSON.stringify(await findServerLog(localMachine(nodeHost()), JSON.parse(process.argv[2]))));
