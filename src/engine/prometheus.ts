/**
 * The text format of Prometheus, as engines write it under `/metrics` → samples. Pure.
 * Untrusted text: a line that is no sample is passed over, never an exception.
 */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const NAME = /^[A-Za-z_:][A-Za-z0-9_:]*/;
const LABEL = /^\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(,|(?=\}))/;
const VALUE = /^\s*([+-]?(?:Inf|NaN|[0-9.]+(?:[eE][+-]?[0-9]+)?))(?:\s+[+-]?[0-9]+)?\s*$/;
const ESCAPES: Readonly<Record<string, string>> = { '\\n': '\n', '\\"': '"', '\\\\': '\\' };

/** Samples with this name, in the order of the text. */
export function readSamples(text: string, name: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split('\n')) {
    // Most lines are of other names; only those that can match are looked into.
    if (!line.startsWith(name)) continue;
    const sample = readSample(line);
    if (sample?.name === name) samples.push(sample);
  }
  return samples;
}

function readSample(line: string): Sample | undefined {
  const name = NAME.exec(line)?.[0];
  if (name === undefined) return undefined;
  const labelled = readLabels(line.slice(name.length));
  if (labelled === undefined) return undefined;
  const written = VALUE.exec(labelled.rest)?.[1];
  if (written === undefined) return undefined;
  const value = Number(written.replace('Inf', 'Infinity'));
  return Number.isNaN(value) && written !== 'NaN' ? undefined : { name, labels: labelled.labels, value };
}

function readLabels(text: string): { readonly labels: Record<string, string>; readonly rest: string } | undefined {
  const begin = /^\s*\{/.exec(text)?.[0];
  if (begin === undefined) return { labels: {}, rest: text };
  // Without a prototype: a label may be called anything.
  const labels = Object.create(null) as Record<string, string>;
  let rest = text.slice(begin.length);
  for (;;) {
    const end = /^\s*\}/.exec(rest)?.[0];
    if (end !== undefined) return { labels, rest: rest.slice(end.length) };
    const found = LABEL.exec(rest);
    if (found === null) return undefined;
    labels[found[1] ?? ''] = (found[2] ?? '').replace(/\\[n"\\]/g, (written) => ESCAPES[written] ?? written);
    rest = rest.slice(found[0].length);
  }
}
