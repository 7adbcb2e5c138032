/**
 * Random lives of a run against a model of a few lines: after every step the counters are the model's, and no prompt has
 * two live records. A crash is a ledger closed without a word and opened again.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { attempt, batch, commitOf, enrolled, launch, recordOf, turnOf } from '../../../test/contracts/ledger-rows.ts';
import { runs } from '../../../test/support/property-runs.ts';
import type { Commit, Lease, Ledger } from '../ledger.ts';
import { openSqliteLedger } from './open-ledger.ts';

const PROMPTS = 6;

interface ModelTurn {
  readonly tokens: number;
  readonly truncated: number;
  /** Everyone who had a part in it. */
  readonly launches: readonly number[];
}

interface ModelPrompt {
  state: 'waiting' | 'leased' | 'done' | 'aside' | 'dropped';
  fence: number;
  turns: ModelTurn[];
  round: number;
  /** The turns of its live record, while a new attempt is to replace it. */
  old?: ModelTurn[];
}

interface Model {
  prompts: Map<string, ModelPrompt>;
  withdrawn: Set<number>;
  generated: number;
  committedBytes: number;
}

interface Real {
  readonly path: string;
  ledger: Ledger;
}

type Step = fc.Command<Model, Real>;

function open(path: string): Ledger {
  return openSqliteLedger(path, { clock: { now: () => 0 } });
}

/** The nth leased prompt, as the lease that a worker would hold. */
function pick(model: Model, nth: number): { prompt: ModelPrompt; lease: Lease } | undefined {
  const leased = [...model.prompts].filter(([, { state }]) => state === 'leased');
  const [id, prompt] = leased[nth % leased.length] ?? [];
  if (id === undefined || prompt === undefined) return undefined;
  return { prompt, lease: leaseOf(id, prompt.fence) };
}

function leaseOf(id: string, fence: number): Lease {
  return { partition: 'B1', id, offset: 0, bytes: 100, turns: 2, fence, finishedTurns: [], round: 0 };
}

/** An attempt that came to nothing: the prompt is as it was before, or done with the record it had. */
function comeToNothing(prompt: ModelPrompt, state: 'aside' | 'dropped'): void {
  prompt.state = prompt.old === undefined ? state : 'done';
  prompt.turns = prompt.old ?? [];
  delete prompt.old;
}

const isForbidden = ({ withdrawn }: Model, turns: readonly ModelTurn[] = []) =>
  turns.some(({ launches }) => launches.some((launch) => withdrawn.has(launch)));

/** What is begun with a turn of a withdrawn launch begins anew once it waits. */
function restart(model: Model): { turns: ModelTurn[]; prompts: number } {
  const restarted = [...model.prompts.values()].filter(
    (prompt) => prompt.state === 'waiting' && isForbidden(model, prompt.turns),
  );
  const turns = restarted.flatMap((prompt) => prompt.turns.splice(0));
  for (const prompt of restarted) prompt.round += 1;
  return { turns, prompts: restarted.length };
}

function agree(model: Model, { ledger }: Real): void {
  const prompts = [...model.prompts.values()];
  const inState = (state: ModelPrompt['state']) => prompts.filter((prompt) => prompt.state === state).length;
  const turns = prompts.flatMap((prompt) => [...prompt.turns, ...(prompt.old ?? [])]);
  expect(ledger.partitions()[0]).toMatchObject({
    ...{ waiting: inState('waiting'), leased: inState('leased'), done: inState('done'), aside: inState('aside') },
    ...{ dropped: inState('dropped'), redoing: prompts.filter(({ old }) => old !== undefined).length },
    spentTokens: turns.reduce((sum, { tokens }) => sum + tokens, 0),
    generatedTokens: model.generated,
    answers: turns.length,
    truncated: turns.reduce((sum, { truncated }) => sum + truncated, 0),
  });
  const live = [...ledger.liveRecords('B1')].map(({ id }) => id);
  expect(live.toSorted()).toEqual(
    [...model.prompts].filter(([, { state, old }]) => state === 'done' || old !== undefined).map(([id]) => id),
  );
  expect(ledger.shards()[0]?.committedBytes ?? 0).toBe(model.committedBytes);
}

/** A step that may not apply, and whose outcome is compared. */
function step(name: string, run: (model: Model, real: Real) => void): Step {
  return {
    check: () => true,
    run: (model, real) => {
      run(model, real);
      agree(model, real);
    },
    toString: () => name,
  };
}

const small = fc.nat(5);
/** Whoever made an answer last comes first. */
const someLaunches = fc
  .subarray([1, 2, 3], { minLength: 1, maxLength: 2 })
  .chain((some) => fc.shuffledSubarray(some, { minLength: some.length }));
const madeBy = ([launch = 1, ...alsoBy]: readonly number[]) => ({ launch, ...(alsoBy.length > 0 ? { alsoBy } : {}) });

const steps = [
  fc.tuple(small, fc.boolean()).map(([n, onlyUnfinished]) =>
    step(`lease(${n}, ${onlyUnfinished})`, (model, { ledger }) => {
      const waiting = [...model.prompts].filter(([, { state }]) => state === 'waiting');
      const isBegun = ({ turns, old }: ModelPrompt) => turns.length > 0 || old !== undefined;
      const begun = waiting.filter(([, prompt]) => isBegun(prompt));
      const fresh = onlyUnfinished ? [] : waiting.filter(([, prompt]) => !isBegun(prompt));
      const chosen = [...begun, ...fresh].slice(0, n);
      for (const [, prompt] of chosen) Object.assign(prompt, { state: 'leased', fence: prompt.fence + 1 });
      const leases = ledger.lease('B1', n, onlyUnfinished);
      expect(leases.map(({ id, fence, finishedTurns, round }) => [id, fence, finishedTurns.length, round])).toEqual(
        chosen.map(([id, { fence, turns, round }]) => [id, fence, turns.length, round]),
      );
      expect(leases.map(({ replaces }) => replaces?.turns)).toEqual(chosen.map(([, { old }]) => old?.length));
    }),
  ),
  fc.tuple(small, small, fc.boolean(), someLaunches).map(([nth, tokens, truncated, launches]) =>
    step(`finishTurn(${nth}, ${tokens}, ${truncated}, ${launches.join()})`, (model, { ledger }) => {
      const picked = pick(model, nth);
      if (picked === undefined) return;
      const { prompt, lease } = picked;
      ledger.commit(commitOf({ turns: [turnOf(lease, prompt.turns.length, { tokens, truncated, ...madeBy(launches) })] }));
      prompt.turns.push({ tokens, truncated: truncated ? 1 : 0, launches });
      model.generated += tokens;
    }),
  ),
  fc.tuple(small, small, someLaunches).map(([nth, tokens, launches]) =>
    step(`commit(${nth}, ${tokens}, ${launches.join()})`, (model, { ledger }) => {
      const picked = pick(model, nth);
      if (picked === undefined) return;
      const { prompt, lease } = picked;
      prompt.turns.push({ tokens, truncated: 0, launches });
      model.generated += tokens;
      const all = prompt.turns.reduce((sum, turn) => sum + turn.tokens, 0);
      const truncated = prompt.turns.reduce((sum, turn) => sum + turn.truncated, 0);
      const place = { offset: model.committedBytes, bytes: 100 };
      model.committedBytes += 100;
      const counts = { tokens: all, turns: prompt.turns.length, truncated };
      const events = ledger.commit(commitOf({ records: [recordOf(lease, { ...place, ...counts, ...madeBy(launches) })] }));
      const isLate = isForbidden(model, prompt.turns);
      expect(events.map(({ kind, facts }) => [kind, facts['records'], facts['tokens']])).toEqual(
        isLate ? [['partition.withdrawn', 1, all]] : [],
      );
      if (isLate) Object.assign(prompt, { state: 'waiting', turns: [], round: prompt.round + 1 });
      else {
        prompt.state = 'done';
        delete prompt.old;
      }
    }),
  ),
  small.map((nth) =>
    step(`setAside(${nth})`, (model, { ledger }) => {
      const picked = pick(model, nth);
      if (picked === undefined) return;
      ledger.commit(commitOf({ asides: [{ ...picked.lease, reason: 'poison-fails', because: 'x' }] }));
      comeToNothing(picked.prompt, 'aside');
    }),
  ),
  small.map((nth) =>
    step(`drop(${nth})`, (model, { ledger }) => {
      const picked = pick(model, nth);
      if (picked === undefined) return;
      ledger.commit(commitOf({ drops: [picked.lease] }));
      comeToNothing(picked.prompt, 'dropped');
    }),
  ),
  fc.subarray(enrolled(PROMPTS).map(({ id }) => id)).map((ids) =>
    step(`supersede(${ids.join()})`, (model, { ledger }) => {
      const done = ids.filter((id) => model.prompts.get(id)?.state === 'done');
      expect(ledger.supersede('B1', ids, 'looped').records).toBe(done.length);
      for (const id of done) {
        const prompt = model.prompts.get(id) as ModelPrompt;
        Object.assign(prompt, { state: 'waiting', old: prompt.turns, turns: [], round: prompt.round + 1 });
      }
    }),
  ),
  fc.constant(
    step('requeue', (model, { ledger }) => {
      const prompts = [...model.prompts.values()];
      const [aside, dropped] = (['aside', 'dropped'] as const).map((wanted) => prompts.filter(({ state }) => state === wanted));
      expect(ledger.requeue('B1')).toMatchObject({ aside: aside?.length, dropped: dropped?.length });
      for (const prompt of dropped ?? []) prompt.round += 1;
      for (const prompt of [...(aside ?? []), ...(dropped ?? [])]) prompt.state = 'waiting';
    }),
  ),
  fc.tuple(small, small, fc.constantFrom('completed', 'lost', 'malformed')).map(([nth, tokens, outcome]) =>
    step(`attempt(${nth}, ${tokens}, ${outcome})`, (model, { ledger }) => {
      const picked = pick(model, nth);
      if (picked === undefined) return;
      ledger.commit(commitOf({ attempts: [attempt(picked.lease, { outcome, tokens })] }));
      if (outcome !== 'completed') model.generated += tokens;
    }),
  ),
  small.map((nth) =>
    step(`unlease(${nth})`, (model, { ledger }) => {
      const picked = pick(model, nth);
      if (picked === undefined) return;
      ledger.unlease([picked.lease]);
      picked.prompt.state = 'waiting';
      restart(model);
    }),
  ),
  fc.tuple(fc.nat(PROMPTS - 1), fc.constantFrom('turn', 'record', 'aside')).map(([index, kind]) =>
    step(`stale ${kind}(p${index})`, (model, { ledger }) => {
      const prompt = model.prompts.get(`p${index}`) as ModelPrompt;
      const fence = prompt.state === 'leased' ? prompt.fence - 1 : prompt.fence;
      const lease = leaseOf(`p${index}`, fence);
      const commits: Record<typeof kind, Partial<Commit>> = {
        turn: { turns: [turnOf(lease, prompt.turns.length)] },
        record: { records: [recordOf(lease, { offset: model.committedBytes })] },
        aside: { asides: [{ ...lease, reason: 'poison-fails', because: 'x' }] },
      };
      expect(() => ledger.commit(commitOf(commits[kind]))).toThrow(/not leased with fence/);
    }),
  ),
  fc.subarray([1, 2, 3], { minLength: 1, maxLength: 1 }).map((launches) =>
    step(`withdraw(${launches.join()})`, (model, { ledger }) => {
      for (const launch of launches) model.withdrawn.add(launch);
      const prompts = [...model.prompts.values()];
      const left = prompts.filter((prompt) => prompt.state === 'done' && isForbidden(model, prompt.turns));
      const replaced = prompts.filter(({ old }) => isForbidden(model, old));
      const turns = [...left.flatMap((prompt) => prompt.turns.splice(0)), ...replaced.flatMap(({ old }) => old ?? [])];
      for (const prompt of left) Object.assign(prompt, { state: 'waiting', round: prompt.round + 1 });
      for (const prompt of replaced) delete prompt.old;
      const begun = restart(model);
      const all = [...turns, ...begun.turns];
      const { events, partitions, ...counts } = ledger.withdraw(launches, 'forbidden');
      expect(counts).toEqual({
        records: left.length + replaced.length,
        turns: all.length,
        prompts: left.length + replaced.length + begun.prompts,
        tokens: all.reduce((sum, { tokens }) => sum + tokens, 0),
      });
      expect(partitions).toEqual(counts.prompts === 0 ? [] : [{ partition: 'B1', ...counts }]);
      expect(events.map(({ kind }) => kind)).toEqual(partitions.map(() => 'partition.withdrawn'));
      expect(ledger.launches().flatMap(({ id, isWithdrawn }) => (isWithdrawn ? [id] : []))).toEqual(
        [...model.withdrawn].toSorted(),
      );
    }),
  ),
  fc.constant(
    step('crash', (model, real) => {
      real.ledger.close();
      real.ledger = open(real.path);
      const leased = [...model.prompts.values()].filter(({ state }) => state === 'leased');
      expect(real.ledger.releaseLeases()).toBe(leased.length);
      for (const prompt of leased) prompt.state = 'waiting';
      restart(model);
    }),
  ),
];

test('whatever a run lives through, its counters are true and no prompt has two live records', () => {
  fc.assert(
    fc.property(fc.commands(steps, { maxCommands: 40, size: '+1' }), (commands) => {
      const folder = mkdtempSync(join(tmpdir(), 'aerie-model-'));
      const real: Real = { path: join(folder, 'ledger.sqlite'), ledger: open(join(folder, 'ledger.sqlite')) };
      try {
        real.ledger.declarePartitions([{ name: 'B1', budget: 0, limit: 0 }]);
        for (let launches = 0; launches < 3; launches++) real.ledger.recordLaunch(launch);
        real.ledger.enrol(batch({ prompts: enrolled(PROMPTS) }));
        const prompts = new Map(
          enrolled(PROMPTS).map(({ id }) => [id, { state: 'waiting', fence: 0, turns: [], round: 0 } as ModelPrompt]),
        );
        fc.modelRun(
          () => ({ model: { prompts, withdrawn: new Set<number>(), generated: 0, committedBytes: 0 }, real }),
          commands,
        );
      } finally {
        real.ledger.close();
        rmSync(folder, { recursive: true });
      }
    }),
    { numRuns: runs(100) },
  );
});
