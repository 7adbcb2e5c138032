import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { findSchema, knownKeys, renderRunJsonSchema, type SchemaNode } from './run-json-schema.ts';

describe('schemas/run.schema.json', () => {
  it('is what the code generates (else: node scripts/write-schemas.mjs)', () => {
    expect(readFileSync(new URL('../../schemas/run.schema.json', import.meta.url), 'utf8')).toBe(renderRunJsonSchema());
  });

  it('describes every key', () => {
    const silent: string[] = [];
    const walk = (node: SchemaNode, path: string) => {
      for (const [key, below] of Object.entries(node.properties ?? {})) {
        if (!/\S/.test(below.description ?? '')) silent.push(`${path}.${key}`);
        walk(below, `${path}.${key}`);
      }
      if (node.items !== undefined) walk(node.items, `${path}[]`);
    };
    walk(findSchema([]) ?? {}, '');
    expect(silent).toEqual([]);
  });
});

it('finds keys by path', () => {
  expect(knownKeys(['servers', 3, 'flags'])).toEqual(['sequences', 'context', 'kv-type', 'threads']);
  expect(knownKeys(['sampling', 'extra-body', 'anything'])).toEqual([]);
  expect(findSchema(['constructor'])).toBeUndefined();
});
