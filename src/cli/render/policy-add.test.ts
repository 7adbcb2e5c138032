/** What the owner reads after a veto: the rule, what broke it, what was taken away, and what follows. */
import { expect, test } from 'vitest';
import type { PolicyAddReport } from '../../app/policy-add.ts';
import { renderPolicyAdd } from './policy-add.ts';

const REPORT: PolicyAddReport = {
  ...{ run: 'r', folder: 'runs/r', byWorker: false, rule: 'forbid kv-cache: below-16-bit', because: 'it degrades', by: 'owner' },
  ...{ launches: [], records: 0, prompts: 0, tokens: 0, partitions: [], unkept: [] },
};
const LAUNCHES = [{ launch: 1, server: 's', because: 'the KV cache is fp8_e4m3' }];
const part = (partition: string) => ({ partition, records: 200, turns: 200, prompts: 200, tokens: 4000 });

test.each<[string, Partial<PolicyAddReport>, string[]]>([
  [
    'nothing broke it',
    {},
    ['broken by  no launch so far; nothing was withdrawn', 'next       aerie run runs/r   with servers that keep the rule'],
  ],
  [
    'a launch without a record',
    { launches: LAUNCHES },
    [
      'broken by  launch 1, s: the KV cache is fp8_e4m3',
      'withdrawn  nothing: these launches had no record',
      'next       aerie run runs/r   with servers that keep the rule',
    ],
  ],
  [
    'one partition, by the worker',
    { launches: LAUNCHES, byWorker: true, records: 200, prompts: 200, tokens: 4000, partitions: [part('B1')] },
    [
      'broken by  launch 1, s: the KV cache is fp8_e4m3',
      'B1         200 records withdrawn, 200 prompts to be asked again, 4,000 tokens back in the budget',
      'next       aerie status runs/r   the worker goes on under the rule',
    ],
  ],
  [
    'two partitions',
    { launches: LAUNCHES, records: 400, prompts: 400, tokens: 8000, partitions: [part('B1'), part('B2')] },
    [
      'broken by  launch 1, s: the KV cache is fp8_e4m3',
      'B1         200 records withdrawn, 200 prompts to be asked again, 4,000 tokens back in the budget',
      'B2         200 records withdrawn, 200 prompts to be asked again, 4,000 tokens back in the budget',
      'in all     400 records, 400 prompts, 8,000 tokens',
      'next       aerie run runs/r   with servers that keep the rule',
    ],
  ],
  [
    'no flag keeps it',
    { byWorker: true, unkept: [{ server: 's', because: 'no flag keeps the rule "min pool: 10000000"' }] },
    [
      'broken by  no launch so far; nothing was withdrawn',
      'not kept   by s: no flag keeps the rule "min pool: 10000000"',
      'next       change flags: in the run file, then aerie run runs/r   it is refused until they keep the rule',
    ],
  ],
])('%s', (_, report, lines) => {
  const [first, ...rest] = renderPolicyAdd({ ...REPORT, ...report }).split('\n');
  expect(first).toBe('policy     forbid kv-cache: below-16-bit: it degrades (decided by owner)');
  expect(rest).toEqual(lines);
});
