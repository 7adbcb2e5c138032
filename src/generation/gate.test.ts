/** The gate: never above its limit, nobody forgotten, in order. */
import fc from 'fast-check';
import { expect, onTestFinished, test } from 'vitest';
import { ManualClock, settle } from '../../test/support/manual-clock.ts';
import { runs } from '../../test/support/property-runs.ts';
import { Gate, Slot } from './gate.ts';

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
  const ending = new AbortController();
  const ramp = gate.ramp(clock, ending.signal);
  for (let asked = 0; asked < 120; asked++) void gate.enter(false);
  expect(gate.taken).toBe(32);
  await clock.pass(99);
  expect(gate.taken).toBe(32);
  await clock.pass(1);
  expect(gate.taken).toBe(64);
  await clock.pass(200);
  expect(gate.taken).toBe(100);
  expect(clock.sleeping).toBe(0);
  ending.abort();
  await ramp;
});

test.each([40, 2048])('an abort ends the ramp, whether it is at its end or not (%i)', async (limit) => {
  const clock = new ManualClock();
  const ending = new AbortController();
  const ramp = new Gate(limit).ramp(clock, ending.signal);
  await clock.pass(100);
  ending.abort();
  await ramp;
});

/** A gate under way, with this many who want to enter. */
function ramping(limit: number, asked: number) {
  const clock = new ManualClock();
  const ending = new AbortController();
  const gate = new Gate(limit);
  const ramp = gate.ramp(clock, ending.signal);
  for (let n = 0; n < asked; n++) void gate.enter(false);
  onTestFinished(async () => {
    ending.abort();
    await ramp;
  });
  return { clock, gate };
}

test('a higher limit is reached by the ramp', async () => {
  const { clock, gate } = ramping(40, 200);
  await clock.pass(1000);
  expect(gate.taken).toBe(40);
  gate.setLimit(150);
  expect([gate.limit, gate.taken]).toEqual([150, 40]);
  await clock.pass(99);
  expect(gate.taken).toBe(40);
  await clock.pass(1);
  expect(gate.taken).toBe(72);
  await clock.pass(1000);
  expect(gate.taken).toBe(150);
});

test('a lower limit takes nothing back and lets nobody in until there is room', async () => {
  const { clock, gate } = ramping(100, 200);
  await clock.pass(1000);
  gate.setLimit(0.5); // at least one
  expect([gate.limit, gate.taken]).toEqual([1, 100]);
  for (let left = 0; left < 99; left++) gate.leave();
  expect(gate.taken).toBe(1);
  gate.leave();
  expect(gate.taken).toBe(1);
  gate.setLimit(50);
  expect(gate.taken).toBe(32);
  await clock.pass(100);
  expect(gate.taken).toBe(50);
});

test('while no server is ready only the first step is open, and from there the ramp begins', async () => {
  const { clock, gate } = ramping(200, 500);
  gate.hold();
  await clock.pass(60_000);
  expect(gate.taken).toBe(32);
  gate.release(0);
  expect(gate.taken).toBe(32);
  await clock.pass(100);
  expect(gate.taken).toBe(64);
  await clock.pass(1000);
  expect(gate.taken).toBe(200);

  gate.hold(); // the server died with all that it had
  for (let failed = 0; failed < 200; failed++) gate.leave();
  await clock.pass(60_000);
  expect(gate.taken).toBe(32);
  gate.release(0);
  await clock.pass(100);
  expect(gate.taken).toBe(64);
});

test('what a short silence has not cost is not let in a second time step by step', async () => {
  const { clock, gate } = ramping(200, 500);
  await clock.pass(1000);
  gate.hold();
  gate.leave();
  expect(gate.taken).toBe(199);
  gate.release(199);
  expect(gate.taken).toBe(199);
  await clock.pass(100);
  expect(gate.taken).toBe(200);
  gate.release(3); // of a second server: nothing was held
  expect(gate.taken).toBe(200);
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
