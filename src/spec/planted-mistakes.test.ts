/** A mistake planted at a known place of a valid file is reported at that place, whatever the file looks like otherwise. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runs } from '../../test/support/property-runs.ts';
import { AerieError } from '../base/errors.ts';
import { type Path, renderPath } from './problem.ts';
import { readRunFile } from './read-run-file.ts';

type Value = string | number | boolean | Value[] | { [key: string]: Value };

/** A word of the file that stays as it is: quoted where YAML would read it as something else. */
const name = fc.stringMatching(/^[a-z][a-z0-9_-]{2,12}$/);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });

const file = fc
  .record({
    run: name,
    model: fc.constantFrom('org/model', 'm/x.gguf'),
    servers: maybe(
      fc.array(
        fc.oneof(
          fc.record({
            engine: fc.constant('embedded'),
            flags: maybe(fc.record({ sequences: fc.integer({ min: 1, max: 64 }), threads: fc.integer({ min: 1, max: 64 }) })),
            port: maybe(fc.integer({ min: 0, max: 65_535 })),
          }),
          fc.record({
            engine: fc.constant('vllm'),
            attach: fc.constant('http://gpu-1:8000'),
            'api-key': maybe(fc.constant('$KEY')),
          }),
        ),
        { minLength: 1, maxLength: 3 },
      ),
    ),
    policy: maybe(fc.constant([{ forbid: { 'kv-cache': 'below-16-bit' }, because: 'it degrades the answers', by: 'owner' }])),
    sampling: maybe(
      fc.record(
        { temperature: fc.constantFrom(0, 0.5, 2), 'max-tokens': fc.integer({ min: 1, max: 9000 }), thinking: fc.boolean() },
        { requiredKeys: [] },
      ),
    ),
    partitions: fc.uniqueArray(
      fc.record({ name, from: fc.constant('data/b.jsonl'), budget: maybe(fc.constantFrom<string | number>('20M', 500)) }),
      { minLength: 1, maxLength: 4, selector: (partition) => partition.name },
    ),
    'in-flight': maybe(fc.integer({ min: 1, max: 4096 })),
  })
  .map((made) => JSON.parse(JSON.stringify(made)) as { [key: string]: Value }); // leaves undefined out

interface Written {
  text: string;
  readonly places: Map<string, { key: string; value: string }>;
}

/** Writes the value as YAML in the style that `style` picks for each map, and notes where each token begins. */
function write(value: { [key: string]: Value }, style: (path: Path) => { flow: boolean; gap: string }): Written {
  const out: Written = { text: '', places: new Map() };
  const here = () => {
    const lines = out.text.split('\n');
    return `${lines.length}:${(lines.at(-1) ?? '').length + 1}`;
  };
  const flow = (below: Value, path: Path): void => {
    if (typeof below !== 'object') out.text += scalar(below);
    else {
      const isList = Array.isArray(below);
      out.text += isList ? '[' : '{ ';
      Object.entries(below).forEach(([key, item], i) => {
        if (i > 0) out.text += ', ';
        const at = [...path, isList ? i : key];
        const keyPlace = here();
        if (!isList) out.text += `${key}: `;
        out.places.set(renderPath(at), { key: keyPlace, value: here() });
        flow(item, at);
      });
      out.text += isList ? ']' : ' }';
    }
  };
  const block = (below: Value, path: Path, indent: string, isFirstInline: boolean): void => {
    const isList = Array.isArray(below);
    Object.entries(below).forEach(([key, item], i) => {
      if (i > 0 || !isFirstInline) out.text += `${style([...path, key]).gap}${indent}`;
      const at = [...path, isList ? i : key];
      const keyPlace = here();
      out.text += isList ? '- ' : `${key}:`;
      if (typeof item !== 'object' || Object.keys(item).length === 0 || style(at).flow) {
        if (!isList) out.text += ' ';
        out.places.set(renderPath(at), { key: keyPlace, value: here() });
        flow(item, at);
        out.text += '\n';
      } else {
        const deeper = `${indent}  `;
        if (isList) out.places.set(renderPath(at), { key: here(), value: here() });
        else {
          out.text += `\n${deeper}`;
          out.places.set(renderPath(at), { key: keyPlace, value: here() });
        }
        block(item, at, deeper, true);
      }
    });
  };
  block(value, [], '', false);
  return out;
}

function scalar(value: string | number | boolean): string {
  return typeof value === 'string' && !/^[a-z$][\w./$-]*$/.test(value) ? JSON.stringify(value) : String(value);
}

/** Every path of the file, maps and lists too. */
function pathsOf(value: Value, path: Path = []): Path[] {
  if (typeof value !== 'object') return [path];
  const isList = Array.isArray(value);
  return [
    ...(path.length === 0 ? [] : [path]),
    ...Object.entries(value).flatMap(([key, item]) => pathsOf(item, [...path, isList ? Number(key) : key])),
  ];
}

function at(value: Value, path: Path): Value | undefined {
  return path.reduce<Value | undefined>((below, step) => (below as Record<string | number, Value> | undefined)?.[step], value);
}

/** The mistake put in, and the path it is to be reported under. */
function plant(
  value: { [key: string]: Value },
  path: Path,
  kind: 'unknown key' | 'wrong type' | 'out of range',
): { path: Path; at: 'key' | 'value' } | undefined {
  const last = path.at(-1);
  const parent = at(value, path.slice(0, -1)) as Record<string | number, Value>;
  if (last === undefined) return undefined;
  if (kind === 'unknown key') {
    if (typeof last === 'number') return undefined;
    const entries = Object.entries(parent);
    for (const key of Object.keys(parent)) delete parent[key];
    for (const [key, item] of entries) parent[key === last ? `${key}x` : key] = item; // keeps the order of the keys
    return { path: [...path.slice(0, -1), `${last}x`], at: 'key' };
  }
  if (kind === 'out of range') {
    if (typeof parent[last] !== 'number') return undefined;
    parent[last] = last === 'budget' ? -5 : 1e12;
    return { path, at: 'value' };
  }
  parent[last] = typeof parent[last] === 'object' ? 'word' : [1];
  return { path, at: 'value' };
}

const gap = fc.constantFrom('', '', '', '\n', '# a comment: with a colon\n', '   \n');
const kind = fc.constantFrom('unknown key' as const, 'wrong type' as const, 'out of range' as const);

describe('a planted mistake', () => {
  it('is reported where it stands, and is the only one', () => {
    let checked = 0;
    fc.assert(
      fc.property(
        file,
        fc.nat(),
        kind,
        fc.array(fc.boolean(), { minLength: 7, maxLength: 7 }),
        fc.array(gap, { minLength: 5, maxLength: 5 }),
        (value, where, what, flows, gaps) => {
          const paths = pathsOf(value);
          const style = (path: Path) => ({
            flow: flows[renderPath(path).length % 7] ?? false,
            gap: gaps[renderPath(path).length % 5] ?? '',
          });
          expect(readRunFile(write(value, style).text, '/p/run.yaml').name).toBe(value['run']);

          const planted = plant(value, paths[where % paths.length] ?? [], what);
          if (planted === undefined) return;
          const written = write(value, style);
          const place = written.places.get(renderPath(planted.path))?.[planted.at];
          const evidence = failureOf(written.text).detail.evidence ?? [];
          expect(evidence.map((line) => line.split('  ').slice(0, 2))).toEqual([[`run.yaml:${place}`, renderPath(planted.path)]]);
          checked += 1;
        },
      ),
      { numRuns: runs(400) },
    );
    expect(checked).toBeGreaterThan(150);
  });

  it('is reported together with all others', () => {
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom('temperature: 9', 'top-p: 9', 'top-k: -1', 'seed: x', 'thinking: 7', 'nonsense: 1'), {
          minLength: 1,
          maxLength: 6,
        }),
        (lines) => {
          const different = [...new Set(lines)];
          const text = `run: r\nmodel: default\npartitions: [{ name: a, from: b }]\nsampling:\n${different.map((line) => `  ${line}\n`).join('')}`;
          const error = failureOf(text);
          expect(error.detail.evidence?.map((line) => Number(line.split(':')[1]))).toEqual(different.map((_, i) => i + 5));
        },
      ),
    );
  });
});

describe('a text that is no run file', () => {
  it.each([
    ['', '1:1  the file is empty; it needs at least run, model and partitions (aerie init writes one)'],
    ['# only a comment\n', '1:1  the file is empty; it needs at least run, model and partitions (aerie init writes one)'],
    ['- run: x\n', '1:1  the file is a list; it must be lines of key: value that begin with run: NAME'],
    ['run:x', '1:1  the file is one piece of text; it must be lines of key: value, with a space after each colon'],
    ['run: x\n\tmodel: y', '2:1  a tab stands where YAML wants spaces; indent with spaces'],
    ['run: a: b', '1:6  a second "key: value" on one line; put text that holds ": " in quotes'],
    ['run: @x', '1:6  text that begins with @ or ` has to stand in quotes'],
    ['run: "x', '1:8  the YAML cannot be read here: Missing closing "quote'],
    [
      'run: [a',
      '1:8  the YAML cannot be read here: Flow sequence in block collection must be sufficiently indented and end with a ]',
    ],
    ['run: x\n---\nrun: y', '2:1  a second document begins here (---); a run file is one document'],
    ['run: !secret x', '1:6  a tag (!…) that a run file does not know; write the plain value'],
    ['%YAML 1.1\n---\nrun: x', '1:1  the file says that it is another YAML than 1.2; leave the %YAML line out'],
    ['ab\ncd\0', '2:3  a byte 0x00, which no text file holds; this is a binary file, or text saved as UTF-16: save it as UTF-8'],
    ['run: \uFFFD', '1:6  a character that is not UTF-8 text; save the file as UTF-8'],
    ['x'.repeat(300_000), '1:1  the file is larger than 256 KiB; this is not a run file'],
    ['['.repeat(100_000), '1:65  nested deeper than any run file; the text is not read further'],
    ['- '.repeat(100_000), '1:513  nested deeper than any run file; the text is not read further'],
  ])('%j', (text, line) => {
    expect(failureOf(text).detail.evidence).toEqual([`run.yaml:${line}`]);
  });

  it('may hold aliases that lead nowhere, round in circles, or everywhere', () => {
    const rest = 'model: default\npartitions: [{ name: a, from: b }]\n';
    expect(failureOf(`run: *nobody\n${rest}`).detail.evidence).toEqual([
      'run.yaml:1:6  run  is *nobody, but no &nobody stands before it',
    ]);
    expect(failureOf(`run: r\nsampling: { extra-body: &x { again: *x } }\n${rest}`).detail.evidence).toEqual([
      'run.yaml:2:37  sampling.extra-body.again  is *x, which holds itself',
    ]);
    const bomb = Array.from(
      { length: 12 },
      (_, i) =>
        `  k${i}: &k${i} [${
          i === 0
            ? '1'
            : Array(9)
                .fill(`*k${i - 1}`)
                .join(', ')
        }]`,
    ).join('\n');
    expect(failureOf(`run: r\n${rest}sampling:\n extra-body:\n${bomb}\n`).message).toBe('run.yaml has 1 mistake.');
  });

  it('never ends in another error, and never in two lines for one mistake', () => {
    const yamlish = fc.array(
      fc.constantFrom(
        'run',
        ': ',
        '- ',
        '\n',
        '  ',
        '{',
        '}',
        '[',
        ']',
        ',',
        '"',
        "'",
        '&a',
        '*a',
        '!t',
        '|',
        '#',
        '?',
        '<<',
        '---',
        '\t',
        '1',
        '~',
      ),
      { maxLength: 30 },
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: 'binary' }),
          yamlish.map((parts) => parts.join('')),
        ),
        (text) => {
          for (const line of failureOf(text).detail.evidence ?? [])
            expect(line).toMatch(/^run\.yaml:[1-9]\d*:[1-9]\d* {2}\P{Cc}+$/u);
        },
      ),
      { numRuns: runs(1000) },
    );
  });
});

function failureOf(text: string): AerieError {
  try {
    readRunFile(text, 'run.yaml');
  } catch (thrown) {
    if (thrown instanceof AerieError) return thrown;
    throw thrown;
  }
  throw new Error('the file was accepted');
}
