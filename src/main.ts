#!/usr/bin/env node
/** The executable: builds the real host and runs the command line. The only file with effects on import. */
import { setFlagsFromString } from 'node:v8';
import { runCli } from './cli/run-cli.ts';

/**
 * V8 makes objects in the old heap where most that came from the same line of code had lived long, and with them whatever is stored into them
 * in the same breath. What waits here for an answer lives for seconds, so that answers of 4,000 ids were made there too: half of
 * what 2,048 requests in flight promoted (docs/benchmarks.md).
 */
setFlagsFromString('--no-allocation-site-pretenuring');

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(
    `error  node.version\n       This is Node ${process.versions.node}; Aerie needs 20.19 or newer.\ntry    Install a newer Node. Nothing was started.\n`,
  );
  process.exitCode = 3;
} else {
  await runCli(process, async () => (await import('./host/node-host.ts')).nodeHost());
}
