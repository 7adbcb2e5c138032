import { expect, it } from 'vitest';
import { KIMI, STORY_FLAGS, tryOf, verdictOfCause } from '../../../test/support/recovery-cases.ts';
import { decideRecovery } from './decide-recovery.ts';
import { describeRecovery } from './describe-recovery.ts';

it('the report names each launch, its end, the line that shows it, what was changed, and what was not done', () => {
  const first = tryOf(verdictOfCause('runtime-oom-activation'), { answered: 900 });
  const flags = { ...STORY_FLAGS, 'max-running-requests': 256 };
  const second = tryOf(verdictOfCause('missing-kernels-for-gpu'), {
    flags,
    wasReady: false,
    answered: 0,
    env: { NCCL_P2P_DISABLE: '1' },
  });
  const tries = [first, second];
  const step = decideRecovery({ engine: 'sglang', version: '0.5.8', tries, policy: [], basis: KIMI, given: STORY_FLAGS });
  const text = describeRecovery(step, tries).join('\n');
  expect(text).toContain('launch 1 (as given): crashed, ready, 900 answers: an activation of a running batch did not fit');
  expect(text).toContain('log:97  ');
  expect(text).toContain('launch 2 (max-running-requests default → 256, NCCL_P2P_DISABLE not set → 1): crashed, never ready');
  expect(text).toContain('not done: attention-backend triton: it changes the answers');
});

it('a step that goes on is told with its figures', () => {
  const tries = [tryOf(verdictOfCause('runtime-oom-activation'))];
  const step = decideRecovery({ engine: 'sglang', version: '0.5.8', tries, policy: [], basis: KIMI, given: STORY_FLAGS });
  expect(describeRecovery(step, tries).join('\n')).toMatch(
    /next: max-running-requests default → 256\n.*request table 2\.00 → 0\.25 GiB.*\n.*3\.67 GiB are left/,
  );
});
