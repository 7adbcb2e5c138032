/** The gate: never above its limit, nobody forgotten, in order. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ManualClock, settle } from '../../test/support/manual-clock.ts';
import { Gate, Slot } from './gate.ts';
import { runs } from '../../test/support/property-runs.ts';

test('those who wait are let in in order, and conversations under way before new ones', async () => {
  const gate = new Gate(1);
  await gate.enter(false);
  const order: string[] = [];
  for (const [name, urgent] of [
    ['new 1', false],
    ['turn 1', true],
    ['new 2', false],
    ['turn 2', true],
  ] as const) {
    void gate.enter(urgent).then(() => order.push(name));
  }
  for (let left = 0; left < 4; left++) {
    gate.leave();
    await settle();
    expect(order.length).toBe(left + 1);
  }
  expect(order).toEqual(['turn 1', 'turn 2', 'new 1', 'new 2']);
});

test('it opens by 32 slots each tenth of a second', async () => {
  const clock = new ManualClock();
  const gate = new Gate(100);
  const ramp = gate.ramp(clock, new AbortController().signal);
  for (let asked = 0; asked < 120; asked++) void gate.enter(false);
  expect(gate.taken).toBe(32);
  await clock.pass(99);
  expect(gate.taken).toBe(32);
  await clock.pass(1);
  expect(gate.taken).toBe(64);
  await clock.pass(200);
  expect(gate.taken).toBe(100);
  await ramp;
  expect(clock.sleeping).toBe(0);
});

test('an abort ends the ramp', async () => {
  const clock = new ManualClock();
  const ending = new AbortController();
  const ramp = new Gate(2048).ramp(clock, ending.signal);
  ending.abort();
  await ramp;
});

test('a slot is given back once, however often it is left, and can be taken again', async () => {
  const gate = new Gate(2);
  await gate.enter(false);
  const slot = new Slot(gate);
  slot.leave();
  slot.leave();
  expect(gate.taken).toBe(0);
  await slot.take();
  await slot.take();
  expect(gate.taken).toBe(1);
});

test('whatever enters, leaves and ramps: never above the limit, first come first served, no wake-up lost', async () => {
  const action = fc.constantFrom('enter', 'urgent', 'leave', 'tick');
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 1, max: 70 }), fc.array(action, { maxLength: 300 }), async (limit, actions) => {
      const clock = new ManualClock();
      const gate = new Gate(limit);
      const ending = new AbortController();
      const ramp = gate.ramp(clock, ending.signal);
      const waiting = { urgent: [] as number[], patient: [] as number[] };
      let inside = 0;
      let open = Math.min(32, limit);
      for (const [n, what] of actions.entries()) {
        if (what === 'enter' || what === 'urgent') {
          const line = what === 'urgent' ? waiting.urgent : waiting.patient;
          line.push(n);
          void gate.enter(what === 'urgent').then(() => {
            expect(line.shift()).toBe(n);
            inside += 1;
          });
        } else if (what === 'leave' && inside > 0) {
          inside -= 1;
          gate.leave();
        } else if (what === 'tick') {
          await clock.pass(100);
          open = Math.min(limit, open + 32);
        }
        await settle();
        const asked = inside + waiting.urgent.length + waiting.patient.length;
        expect([inside, gate.taken]).toEqual([Math.min(open, asked), Math.min(open, asked)]);
      }
      ending.abort();
      await ramp;
    }),
    { numRuns: runs(60) },
  );
});
