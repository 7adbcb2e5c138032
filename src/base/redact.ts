/**
 * Keeps secrets out of what is shown and kept: events, evidence, lines of a log. Pure.
 * Promises: a value is found as it stands, and as a URL, a JSON text or a shell word would hold it; the longest first, so that one that holds another
 * leaves nothing of it. Values below eight characters are left alone: they would blot out ordinary words.
 */

const SHORTEST = 8;
const REPLACED = '[secret]';

export type Redact = (text: string) => string;

export function openRedactor(secrets: readonly string[]): Redact {
  // A log shows a key of several lines one line at a time.
  const values = secrets.flatMap((secret) => [secret, ...secret.split(/\r?\n/)]).filter((value) => value.length >= SHORTEST);
  const forms = [...new Set(values.flatMap(formsOf))].sort((a, b) => b.length - a.length);
  if (forms.length === 0) return (text) => text;
  const pattern = new RegExp(forms.map(escapePattern).join('|'), 'g');
  return (text) => text.replaceAll(pattern, REPLACED);
}

function formsOf(value: string): string[] {
  const json = (text: string) => JSON.stringify(text).slice(1, -1);
  const shell = value.replaceAll("'", `'\\''`);
  // A JSON text may stand inside another one, as a body does in a log line.
  return [value, json(value), json(json(value)), shell, ...urlForms(value)];
}

function urlForms(value: string): string[] {
  // What is no text (half of a surrogate pair) has no place in a URL.
  if (!/^\P{Surrogate}*$/u.test(value)) return [];
  const encoded = encodeURIComponent(value);
  return [encoded, encoded.replaceAll('%20', '+'), encoded.replaceAll(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase())];
}

function escapePattern(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
