/** An account in between: it changes nothing, and says what a reader of only that part says. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { accountOf, readCorpus } from '../../test/support/diagnose-log.ts';
import { LogReader } from './read-log.ts';

const LOGS = readCorpus().map(({ name, text }) => ({ name, bytes: Buffer.from(text) }));

function cut(bytes: Buffer, shares: readonly number[]): Buffer[] {
  const ends = [...shares.map((share) => Math.floor(share * bytes.length)), bytes.length].sort((a, b) => a - b);
  return ends.map((end, at) => bytes.subarray(ends[at - 1] ?? 0, end));
}

describe('an account of a log so far', () => {
  it('changes nothing and equals that of a fresh reader, for any cuts of any log of the corpus', () => {
    const share = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(fc.constantFrom(...LOGS), fc.array(share, { minLength: 1, maxLength: 5 }), ({ name, bytes }, shares) => {
        const reader = new LogReader();
        let fed = 0;
        for (const part of cut(bytes, shares)) {
          reader.feed(part);
          fed += part.length;
          const fresh = new LogReader();
          fresh.feed(bytes.subarray(0, fed));
          expect(reader.account(), `${name}, ${fed} bytes`).toEqual(fresh.account());
          expect(reader.account()).toEqual(reader.account());
        }
      }),
      { numRuns: 300 },
    );
  });

  it('is the same after every line of each log', () => {
    for (const { name, bytes } of LOGS) {
      const reader = new LogReader();
      for (let from = 0; from < bytes.length; ) {
        const end = bytes.indexOf(10, from) + 1 || bytes.length;
        reader.feed(bytes.subarray(from, end));
        reader.account();
        from = end;
      }
      expect(reader.account(), name).toEqual(accountOf(bytes.toString()));
    }
  });
});

describe('lines of a log that is read from an offset', () => {
  it('keep the numbers of the file', () => {
    for (const { name, bytes } of LOGS) {
      const text = bytes.toString();
      const before = 'a line of the start before\n'.repeat(1234);
      const reader = new LogReader({ firstLine: 1235 });
      reader.feed(bytes);
      const { ownBytes, ...read } = reader.account();
      const { ownBytes: withBefore, ...whole } = accountOf(before + text);
      expect(withBefore - ownBytes, name).toBe(before.length);
      expect({ ...read, tail: [] }, name).toEqual({ ...whole, tail: [] });
      expect(read.tail.at(-1), name).toEqual(whole.tail.at(-1));
    }
  });

  it('counts nothing where nothing was fed', () => {
    expect(new LogReader({ firstLine: 7 }).account()).toMatchObject({ lines: 6, ownBytes: 0, tail: [] });
    expect(new LogReader().account()).toMatchObject({ lines: 0, recognised: 0, lastAt: undefined });
  });
});

describe('what probes write', () => {
  const WORK = '[2026-02-01 10:00:00 TP0] Load weight begin. avail mem=94.14 GB\n';
  const PROBES = [
    '[2026-02-01 10:00:30] INFO:     127.0.0.1:51234 - "GET /health HTTP/1.1" 503 Service Unavailable\n',
    'INFO:     127.0.0.1:51234 - "GET /metrics HTTP/1.1" 200 OK\n',
    '[2026-02-01 10:00:50] "GET /health_generate HTTP/1.1" 200 OK\n',
    "[2026-02-01 10:00:50] Health check failed. Server couldn't get a response from detokenizer for last 20 seconds.\n",
  ];

  it('adds nothing to the bytes that are the server’s own', () => {
    const probe = fc.constantFrom(...PROBES);
    fc.assert(
      fc.property(fc.array(probe), (probes) => {
        expect(accountOf(WORK + probes.join('')).ownBytes).toBe(WORK.length);
      }),
    );
    expect(accountOf(`${WORK}[2026-02-01 10:00:51] "POST /generate HTTP/1.1" 200 OK\n`).ownBytes).toBeGreaterThan(WORK.length);
  });

  it('is no sign of an engine', () => {
    expect(accountOf('10.0.0.1 "GET /index.html HTTP/1.1" 200\n').recognised).toBe(0);
  });
});

it('costs little, and memory does not grow with the log', () => {
  const decode = (n: number) =>
    `[2026-02-01 10:00:00 TP0] Decode batch, #running-req: ${n % 99}, #token: 900, token usage: 0.40, gen throughput (token/s): 900.00, #queue-req: 0, \n`;
  const reader = new LogReader();
  for (let part = 0; part < 40; part++) {
    reader.feed(Buffer.from(Array.from({ length: 1000 }, (_, at) => decode(at)).join('')));
    const { work, tail, facts, lastProgress } = reader.account();
    expect(lastProgress?.line).toBe((part + 1) * 1000);
    expect(work.length).toBeLessThanOrEqual(180);
    expect(tail.length).toBeLessThan(200);
    expect(facts.samples.length).toBeLessThanOrEqual(10_000);
  }
});
