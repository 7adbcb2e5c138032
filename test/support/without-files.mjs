/**
 * An Aerie that can open no more files: it looks at a process of this machine, then starts a program in each way that it has, and says
 * what it was told. `sh -c 'ulimit -n 400; exec node test/support/without-files.mjs PID MARKER'`
 */
import { closeSync, openSync } from 'node:fs';
import { runCommand } from '../../dist/host/commands.js';
import { holdProcess } from '../../dist/host/held-process.js';
import { nodeHost } from '../../dist/host/node-host.js';
import { runPiped } from '../../dist/host/piped-command.js';
import { localMachine } from '../../dist/machine/local/local-machine.js';

const [, , pid = '', marker = ''] = process.argv;
const machine = localMachine(nodeHost());
const program = { file: 'true', args: [], env: process.env };
const piped = () => runPiped({ ...program, input: new Uint8Array(), hear: () => false, signal: new AbortController().signal });
const known = (await machine.findByMarker(marker)).find((one) => one.pid === Number(pid));
const codeOf = (answer) =>
  answer.then(
    (told) => told,
    (thrown) => thrown.code,
  );
const ask = async () => ({
  look: (await machine.look(known, { marker, statusPath: '/no/such.exit' })).main,
  found: await codeOf(machine.findByMarker(marker).then((all) => all.length)),
  port: await codeOf(machine.portOwner(1).then(() => 'free')),
  signal: await codeOf(machine.signal({ ...known, startTicks: 0 }, 'SIGTERM')),
  held: await holdProcess({ ...program, hearLine: () => undefined }).ended,
  piped: await piped(),
  command: await runCommand({ ...program, timeoutMs: 60_000 }),
});

const taken = [];
try {
  for (;;) taken.push(openSync('/dev/null'));
} catch (thrown) {
  if (thrown.code !== 'EMFILE') throw thrown;
}
const without = await ask();
for (const file of taken) closeSync(file);
process.stdout.write(JSON.stringify({ without, with: await ask() }));
