/** A machine behind ssh keeps the contract of machines: a real sshd, as the user of this process and as an account without rights. */
import { describe } from 'vitest';
import { openSshBench } from '../support/shell-bench.ts';
import { hasSshd, isRoot } from '../support/sshd.ts';
import { describeMachine } from './machine.ts';

describe.runIf(process.platform === 'linux' && hasSshd)('over ssh', () => {
  describeMachine('as this user', () => openSshBench({}));
  // Only root can make an account.
  describe.runIf(isRoot)('without root', () =>
    describeMachine('as an account without rights', () => openSshBench({ account: {} })),
  );
});
