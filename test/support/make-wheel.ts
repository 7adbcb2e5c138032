/** A wheel (zip file) for tests: local headers, deflated or stored members, central directory. Checksums are left 0: nobody reads them. */
import { deflateRawSync } from 'node:zlib';

export function makeWheel(members: Readonly<Record<string, Buffer>>, { deflate = true } = {}): Buffer {
  const locals: Buffer[] = [];
  const directory: Buffer[] = [];
  let offset = 0;
  for (const [name, content] of Object.entries(members)) {
    const packed = deflate ? deflateRawSync(content) : content;
    const sizes = Buffer.alloc(12);
    sizes.writeUInt32LE(packed.length, 4);
    sizes.writeUInt32LE(content.length, 8);
    const start = Buffer.alloc(10); // version, flags, method, time, date
    start.writeUInt16LE(20, 0);
    start.writeUInt16LE(deflate ? 8 : 0, 4);
    const names = Buffer.from(name, 'utf8');
    const extra = Buffer.from('extra field of the local header only');
    const lengths = (extraBytes: number) => {
      const buffer = Buffer.alloc(4);
      buffer.writeUInt16LE(names.length, 0);
      buffer.writeUInt16LE(extraBytes, 2);
      return buffer;
    };
    const place = Buffer.alloc(14); // comment length, disk, attributes, offset
    place.writeUInt32LE(offset, 10);
    const local = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), start, sizes, lengths(extra.length), names, extra, packed]);
    directory.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x00', 'latin1'), start, sizes, lengths(0), place, names]));
    locals.push(local);
    offset += local.length;
  }
  const central = Buffer.concat(directory);
  const end = Buffer.alloc(18);
  end.writeUInt16LE(directory.length, 4);
  end.writeUInt16LE(directory.length, 6);
  end.writeUInt32LE(central.length, 8);
  end.writeUInt32LE(offset, 12);
  return Buffer.concat([...locals, central, Buffer.from('PK\x05\x06', 'latin1'), end]);
}
