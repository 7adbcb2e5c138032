/**
 * One-dimensional arrays as NumPy files, format version 1.0. Pure.
 *
 * Magic, version, length of the header, the header (a Python literal padded with spaces so that the data begins at a
 * multiple of 64, ended by a newline), then the values, little-endian.
 */

export function renderInt64Npy(values: readonly number[]): Buffer {
  const data = Buffer.alloc(values.length * 8);
  for (const [at, value] of values.entries()) data.writeBigInt64LE(BigInt(value), at * 8);
  return withHeader('<i8', values.length, data);
}

export function renderBoolNpy(values: readonly boolean[]): Buffer {
  return withHeader('|b1', values.length, Buffer.from(values.map(Number)));
}

/** Bytes before the header: magic (6), version (2), length (2). */
const PREFIX = 10;

function withHeader(dtype: string, length: number, data: Buffer): Buffer {
  const header = `{'descr': '${dtype}', 'fortran_order': False, 'shape': (${length},), }`;
  const padded = Math.ceil((PREFIX + header.length + 1) / 64) * 64 - PREFIX;
  const size = Buffer.alloc(2);
  size.writeUInt16LE(padded);
  return Buffer.concat([
    Buffer.from('\x93NUMPY\x01\x00', 'latin1'),
    size,
    Buffer.from(`${header.padEnd(padded - 1)}\n`, 'latin1'),
    data,
  ]);
}
