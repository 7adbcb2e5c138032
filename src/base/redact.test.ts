import fc from 'fast-check';
import { expect, test } from 'vitest';
import { openRedactor } from './redact.ts';

test('a value is found in every form that a log, a URL, JSON or a shell may hold it in', () => {
  const secret = `hf_a'b"c\\d/e f+%`;
  const redact = openRedactor([secret]);
  const encoded = encodeURIComponent(secret);
  const forms = [
    secret,
    encoded,
    encoded.replaceAll('%20', '+'),
    JSON.stringify(secret),
    JSON.stringify(JSON.stringify({ key: secret })),
    secret.replaceAll("'", `'\\''`),
  ];
  for (const form of forms) {
    const text = redact(`before ${form} after`);
    expect(text).toContain('[secret]');
    expect(text).not.toContain('hf_a');
    expect(text.startsWith('before ') && text.endsWith(' after')).toBe(true);
  }
});

test('short values and empty ones hide nothing', () => {
  expect(openRedactor(['', 'true', '8000', '1234567'])('true 8000 1234567')).toBe('true 8000 1234567');
  expect(openRedactor([])('a')).toBe('a');
});

test('a value of several lines is hidden line by line', () => {
  const redact = openRedactor(['-----BEGIN KEY-----\nMIIEvgIBADANBg\n-----END KEY-----']);
  expect(redact('1: -----BEGIN KEY-----\n2: MIIEvgIBADANBg')).toBe('1: [secret]\n2: [secret]');
});

test('whatever the secrets are, nothing of the longest stays, and text without them is left as it is', () => {
  const secret = fc.string({ minLength: 8, maxLength: 40, unit: 'grapheme' }).filter((text) => !'[secret]'.includes(text));
  fc.assert(
    fc.property(
      fc.array(secret, { minLength: 1, maxLength: 4 }),
      fc.array(fc.constantFrom('a', ' ', '"', '\n'), { maxLength: 5 }),
      (secrets, around) => {
        const redact = openRedactor(secrets);
        const pad = around.join('');
        for (const one of secrets) expect(redact(`${pad}${one}${pad}`)).not.toContain(one);
        expect(redact(pad)).toBe(pad);
      },
    ),
  );
});
