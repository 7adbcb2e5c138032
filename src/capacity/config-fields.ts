/**
 * Reading numbers and words out of a parsed `config.json`, which anyone may have written. Pure.
 * Promises: nothing but what is of the kind asked for comes out; a field that must be there and is not ends in an error
 * that names it.
 */
import { AerieError } from '../base/errors.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** Larger than any real count (2^40 parameters of one tensor), small enough that products of three stay exact enough. */
const MOST = 2 ** 40;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function fieldsAt(fields: Fields, name: string): Fields | undefined {
  const value = ownAt(fields, name);
  return isFields(value) ? value : undefined;
}

/** The first of `names` that holds a whole number from 0 up. */
export function countAt(fields: Fields, ...names: readonly string[]): number | undefined {
  for (const name of names) {
    const value = ownAt(fields, name);
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 && value <= MOST) return value;
  }
  return undefined;
}

export function textAt(fields: Fields, name: string): string {
  const value = ownAt(fields, name);
  return typeof value === 'string' ? value : '';
}

export function listAt(fields: Fields, name: string): readonly unknown[] {
  const value = ownAt(fields, name);
  return Array.isArray(value) ? value : [];
}

export function isTrueAt(fields: Fields, name: string): boolean {
  return ownAt(fields, name) === true;
}

function ownAt(fields: Fields, name: string): unknown {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

/** A number without which there is no plan: at least 1. */
export function needCount(fields: Fields, model: string, ...names: readonly string[]): number {
  const value = countAt(fields, ...names);
  if (value !== undefined && value > 0) return value;
  throw missingField(model, names);
}

export function missingField(model: string, names: readonly string[]): AerieError {
  const wanted = names.join(' or ');
  return new AerieError(
    'model.shape-unknown',
    `The config of ${model} has no ${wanted}, so nothing can be said about its memory.`,
    {
      because: `a plan needs ${wanted}, a whole number from 1 up`,
      remedy:
        'Give the folder or repository that holds the full config.json of the model, or start the server once and plan with --log.',
      facts: { field: wanted },
    },
  );
}
