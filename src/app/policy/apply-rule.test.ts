/** A rule that comes: what it says it did, what the run then is, and that a second time does nothing more. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { UNKNOWN_FACTS } from '../../engine/dialect.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import { openSqliteLedger } from '../../ledger/sqlite/open-ledger.ts';
import type { PolicyRule } from '../../spec/run.ts';
import { applyRule, withdrawBroken } from './apply-rule.ts';

const VETO: PolicyRule = { forbid: { kvCache: 'below-16-bit' }, because: 'it degrades', by: 'owner' };

/** Launches of these KV types, the last one being what the run is by its own account. */
function ledgerWith(...types: string[]): Ledger {
  const folder = mkdtempSync(join(tmpdir(), 'aerie-rule-'));
  const ledger = openSqliteLedger(join(folder, 'ledger.sqlite'), { clock: { now: () => 0 } });
  onTestFinished(() => {
    ledger.close();
    rmSync(folder, { recursive: true });
  });
  for (const kvCacheDtype of types) {
    const facts = { ...UNKNOWN_FACTS, model: 'm', kvCacheDtype };
    ledger.setIdentity({ model: 'm', 'launch.model': 'm', 'launch.kvCacheDtype': kvCacheDtype });
    ledger.recordLaunch({
      ...{ server: 's', engine: 'sglang', engineVersion: '0.5.8', kvCacheDtype, weights: 'unknown', policyHash: '' },
      ...{ detail: JSON.stringify({ facts }), startedAt: 0 },
    });
  }
  return ledger;
}

test('the outcome names the launches that break it, and the run is what the last launch that is left is', () => {
  const ledger = ledgerWith('bf16', 'fp8_e4m3');
  const { outcome, events } = applyRule(VETO, ledger);
  expect(outcome).toMatchObject({
    rule: 'forbid kv-cache: below-16-bit',
    because: 'it degrades',
    by: 'owner',
    records: 0,
    unkept: [],
  });
  expect(outcome.launches).toMatchObject([{ launch: 2, server: 's' }]);
  expect(events.map(({ kind }) => kind)).toEqual(['policy.added']);
  expect(ledger.launches().map(({ isWithdrawn }) => isWithdrawn)).toEqual([false, true]);
  expect(ledger.identity()).toMatchObject({ model: 'm', 'launch.kvCacheDtype': 'bf16' });
});

test('where no launch is left the run has not said yet what its servers are', () => {
  const ledger = ledgerWith('fp8_e4m3');
  applyRule(VETO, ledger);
  expect(ledger.identity()).toEqual({ model: 'm' });
});

test('a second time adds nothing and withdraws nothing', () => {
  const ledger = ledgerWith('bf16', 'fp8_e4m3');
  applyRule(VETO, ledger);
  const identity = ledger.identity();
  const { outcome, events } = applyRule(VETO, ledger);
  expect([outcome.launches, events]).toEqual([[], []]);
  expect(ledger.addedRules()).toHaveLength(1);
  expect(ledger.identity()).toEqual(identity);
});

test('a rule of the run file withdraws at a start, and is not added', () => {
  const ledger = ledgerWith('fp8_e4m3', 'bf16');
  withdrawBroken([VETO], ledger);
  expect(ledger.launches().map(({ isWithdrawn }) => isWithdrawn)).toEqual([true, false]);
  expect(ledger.addedRules()).toEqual([]);
  expect(withdrawBroken([VETO], ledger)).toEqual([]);
});

test('a death right after the rule leaves it in the ledger, and the next start ends what was begun', () => {
  const ledger = ledgerWith('bf16', 'fp8_e4m3');
  const dies = () => {
    throw new Error('killed');
  };
  expect(() => applyRule(VETO, ledger, dies)).toThrow('killed');
  expect(ledger.identity()).toMatchObject({ 'launch.kvCacheDtype': 'fp8_e4m3' });
  withdrawBroken(
    ledger.addedRules().map(({ rule }) => rule),
    ledger,
  );
  expect(ledger.identity()).toMatchObject({ 'launch.kvCacheDtype': 'bf16' });
});
