/**
 * The program behind cli-door.ts: performs one command line after the other in this one process, through the real entry.
 *
 * A command line has ended when this process would have ended: its event loop is empty. Whatever ends the process itself
 * (process.exit, an exception nobody caught, a rejection nobody handled) ends it here too, in the middle of that command line.
 */
import { runCli } from '../../dist/cli/run-cli.js';
import { nodeHost } from '../../dist/host/node-host.js';

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];
/** What Node exits with when nothing is left to wait for and the program has not come to its end. */
const UNSETTLED = 13;
/** The entry listens for their errors once in a process. */
const STREAMS = [process.stdout, process.stderr];
const home = process.cwd();
const program = process.argv.slice(0, 2);

let current;

function begin({ mark, args, cwd, env }) {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.chdir(cwd);
  process.argv = [...program, ...args];
  process.exitCode = undefined;
  current = { mark, isAnswered: false, forErrors: STREAMS.map((stream) => stream.listeners('error')) };
  process.channel.unref(); // from here on only the command line keeps this process alive
  void perform(current);
}

async function perform(command) {
  await runCli(process, async () => nodeHost());
  command.isAnswered = true;
}

function end({ mark, isAnswered, forErrors }) {
  current = undefined;
  const code = isAnswered ? Number(process.exitCode ?? 0) : UNSETTLED;
  const listensFor = SIGNALS.filter((signal) => process.listenerCount(signal) > 0);
  STREAMS.forEach((stream, at) => {
    for (const added of stream.listeners('error')) if (!forErrors[at].includes(added)) stream.off('error', added);
  });
  process.exitCode = undefined;
  process.chdir(home);
  process.channel.ref();
  process.stdout.write(mark, () => process.stderr.write(mark, () => process.send({ kind: 'ended', code, listensFor })));
}

process.on('beforeExit', () => current !== undefined && end(current));
process.on('disconnect', () => process.exit());
process.on('message', (said) => {
  if (said === 'what?') process.send({ kind: 'waits', isAnswered: current?.isAnswered, for: process.getActiveResourcesInfo() });
  else begin(said);
});
process.send({ kind: 'ready' });
