/** Which of many looks is told: what is ill, and once that it is well again. */
import { expect, test } from 'vitest';
import { judged, REFUSED, WELL } from '../../../test/support/live-looks.ts';
import type { Happening } from '../../base/events.ts';
import type { LiveVerdict } from '../../diagnosis/live/look.ts';
import { VerdictTeller } from './tell-verdict.ts';

const READY = '[2026-02-01 10:00:09] The server is fired up and ready to roll!\n';
const well = { ...judged(READY, [[0, { health: WELL }]]), state: 'serving', cause: 'none' } as LiveVerdict;
const loading = { ...judged('', [[0, { health: REFUSED }]]), state: 'initializing', cause: 'none' } as LiveVerdict;
const slow: LiveVerdict = { ...loading, cause: 'slow-kernel-build' };
const hung: LiveVerdict = { ...well, state: 'hung', cause: 'workers-gone' };
const stopped: LiveVerdict = { ...well, state: 'stopped' };

function toldOf(verdicts: readonly LiveVerdict[], over: { tellsEnds?: boolean; isBack?: () => boolean } = {}): string[] {
  const told: Happening[] = [];
  const teller = new VerdictTeller({ name: 's', emit: (one) => void told.push(one), facts: {}, ...over });
  for (const verdict of verdicts) teller.look(verdict, '');
  return told.map(({ facts }) => `${String(facts?.['state'])} ${String(facts?.['cause'])}`);
}

test('a cause that was seen in a start is not told, and neither is that it passed', () => {
  expect(toldOf([loading, slow, loading, well, well])).toEqual([]);
  expect(toldOf([slow, well])).toEqual([]);
});

test('an illness is told once, and once that it is over, also after a start in between', () => {
  expect(toldOf([well, hung, hung, well, well])).toEqual(['hung workers-gone', 'serving none']);
  expect(toldOf([well, hung, loading, slow, well])).toEqual(['hung workers-gone', 'serving none']);
});

test('that it is over is told when it is back', () => {
  let isBack = false;
  const verdicts = [hung, well, well];
  expect(toldOf(verdicts, { isBack: () => isBack })).toEqual(['hung workers-gone']);
  isBack = true;
  expect(toldOf(verdicts, { isBack: () => isBack })).toHaveLength(2);
});

test('an end that nobody else tells is told of a server that had been there', () => {
  expect(toldOf([stopped], { tellsEnds: true })).toEqual([]);
  expect(toldOf([well, stopped, loading, well], { tellsEnds: true })).toEqual(['stopped none', 'serving none']);
  expect(toldOf([well, stopped])).toEqual([]);
});
