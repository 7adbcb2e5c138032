/** A machine that is asked in sh keeps the contract of machines, in every shell that is here and where nothing but sh and coreutils is. */
import { describe } from 'vitest';
import { openShellBench } from '../support/shell-bench.ts';
import { makeBarePath, shellsHere } from '../support/shells.ts';
import { describeMachine } from './machine.ts';

// Without /proc nothing can be said of a process, and that is all a machine says there.
describe.runIf(process.platform === 'linux')('on Linux', () => {
  for (const [name, shell] of shellsHere()) describeMachine(name, () => openShellBench(() => ({ shell })));
  describeMachine('nothing but sh and coreutils', () =>
    openShellBench((folder) => ({ shell: ['/bin/sh'], env: { PATH: makeBarePath(folder), HOME: folder } })),
  );
});
