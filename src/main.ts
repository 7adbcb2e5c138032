#!/usr/bin/env node
/** The executable: builds the real host and runs the command line. The only file with effects on import. */
import { runCli } from './cli/run-cli.ts';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 20 || (major === 20 && minor < 19)) {
  process.stderr.write(
    `error  node.version\n       This is Node ${process.versions.node}; Aerie needs 20.19 or newer.\ntry    Install a newer Node. Nothing was started.\n`,
  );
  process.exitCode = 3;
} else {
  await runCli(process, async () => (await import('./host/node-host.ts')).nodeHost());
}
