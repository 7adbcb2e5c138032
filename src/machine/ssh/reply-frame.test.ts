import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ReplyFrame } from './reply-frame.ts';

const NONCE = '0123456789abcdef0123456789abcdef';

function framed(before: Uint8Array, body: Uint8Array, code: number): Buffer {
  return Buffer.concat([before, Buffer.from(`${NONCE}\n`), body, Buffer.from(`\n${NONCE} ${code}\n`)]);
}

/** Bytes in which parts of the frame's own words turn up. */
const bytes = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 40 }),
      fc.constantFrom('\n', `\n${NONCE.slice(0, 9)}`, `${NONCE}x`, ' 0\n').map(Buffer.from),
    ),
  )
  .map((parts) => Buffer.concat(parts));

test('the bytes between the marks come out as they are, wherever the pieces are cut', () => {
  const before = bytes.filter((some) => !some.includes(`${NONCE}\n`));
  const property = fc.property(before, bytes, fc.nat(255), fc.array(fc.nat(50)), fc.nat(300), (noise, body, code, cuts, most) => {
    const frame = new ReplyFrame(NONCE, most);
    const whole = Buffer.concat([framed(noise, body, code), Buffer.from('what comes after the end')]);
    let at = 0;
    for (const length of [...cuts, whole.length]) {
      frame.push(whole.subarray(at, at + length));
      at += length;
    }
    expect(frame.hasBegun).toBe(true);
    expect(frame.code).toBe(code);
    expect(Buffer.from(frame.stdout).equals(body.subarray(0, most))).toBe(true);
  });
  fc.assert(property);
});

test('nothing is an end but the end', () => {
  const property = fc.property(bytes, fc.nat(60), (body, missing) => {
    const whole = framed(Buffer.alloc(0), body, 0);
    const frame = new ReplyFrame(NONCE, 1_000);
    frame.push(whole.subarray(0, Math.max(0, whole.length - 1 - missing)));
    expect(frame.code).toBeUndefined();
  });
  fc.assert(property);
});
