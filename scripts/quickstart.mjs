/** `npm run quickstart`: the main job on a fresh clone: packages, build, model, engine, run, table. The same command resumes. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { build, install, root } from './ready.mjs';

install();
build();
const child = spawn(
  process.execPath,
  [join(root, 'dist', 'main.js'), 'run', join('examples', 'quickstart.yaml'), ...process.argv.slice(2)],
  { cwd: root, stdio: 'inherit' },
);
// Ctrl-C reaches the child through the terminal; SIGTERM is passed on. Either way the child says how it ended.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => child.kill('SIGTERM'));
child.on('exit', (code, signal) => {
  process.exitCode = code ?? (signal === 'SIGKILL' ? 137 : 1);
});
