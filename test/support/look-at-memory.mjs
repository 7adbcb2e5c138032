/**
 * What Aerie sees of GPU memory from wherever this runs, a pid namespace of its own for instance:
 * `node test/support/look-at-memory.mjs '[…baseline…]'` prints `{memory, sentences}` as JSON.
 */
import { nodeHost } from '../../dist/host/node-host.js';
import { localMachine } from '../../dist/machine/local/local-machine.js';
import { describeHolders } from '../../dist/server/describe-holders.js';
import { awaitMemory } from '../../dist/server/gpu-memory.js';

const host = nodeHost();
const [, , baseline = '[]'] = process.argv;
const memory = await awaitMemory({
  machine: localMachine(host),
  baseline: JSON.parse(baseline),
  clock: host.clock,
  withinMs: 0,
  ours: undefined,
});
const sentences = memory.kind === 'held' ? describeHolders(memory) : [];
process.stdout.write(`${JSON.stringify({ memory, sentences })}\n`);
