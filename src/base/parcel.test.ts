/** A parcel is taken once. */
import { expect, test } from 'vitest';
import { Parcel } from './parcel.ts';

test('what is in a parcel comes out once, undefined too', () => {
  const parcel = new Parcel<string | undefined>(undefined);
  expect(parcel.take()).toBeUndefined();
  expect(() => parcel.take()).toThrow('taken twice');
});
