/**
 * One member of a wheel (a zip file) as a stream of bytes. Reads the central directory and inflates; nothing is unpacked
 * to disk. Enough for what package indexes hold: stored or deflated members below 4 GiB, no encryption. What it yields is not
 * checked here: whoever stores it knows its sha256.
 */
import { createReadStream } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { pipeline } from 'node:stream';
import { createInflateRaw } from 'node:zlib';

const END_OF_DIRECTORY = 0x06054b50;
const DIRECTORY_ENTRY = 0x02014b50;
const LOCAL_HEADER = 0x04034b50;
/** The end record is 22 bytes and a comment of up to 65,535. */
const END_SEARCH_BYTES = 22 + 65_535;

export class WheelError extends Error {
  constructor(path: string, what: string) {
    super(`${path} ${what}`);
    this.name = 'WheelError';
  }
}

interface Member {
  readonly method: number;
  readonly packedBytes: number;
  readonly offset: number;
}

/** undefined when the wheel has no such member. */
export async function openWheelMember(path: string, name: string): Promise<AsyncIterable<Uint8Array> | undefined> {
  const file = await open(path, 'r');
  try {
    const member = await findMember(file, path, name);
    if (member === undefined) return undefined;
    const header = await readAt(file, path, member.offset, 30);
    if (header.readUInt32LE(0) !== LOCAL_HEADER) throw new WheelError(path, `has no local header at byte ${member.offset}`);
    const start = member.offset + 30 + header.readUInt16LE(26) + header.readUInt16LE(28);
    const packed = createReadStream(path, {
      start,
      end: Math.max(start, start + member.packedBytes - 1),
      highWaterMark: 2 ** 20,
    });
    if (member.method === 0) return packed;
    if (member.method !== 8) throw new WheelError(path, `packs ${name} with method ${member.method}, which is not read here`);
    return pipeline(packed, createInflateRaw({ chunkSize: 2 ** 20 }), () => undefined); // the reader of the stream gets the error
  } finally {
    await file.close();
  }
}

async function findMember(file: FileHandle, path: string, name: string): Promise<Member | undefined> {
  const { size } = await file.stat();
  const tail = await readAt(file, path, Math.max(0, size - END_SEARCH_BYTES), Math.min(size, END_SEARCH_BYTES));
  const end = tail.lastIndexOf(Buffer.from([0x50, 0x4b, 0x05, 0x06]));
  if (end < 0 || end + 22 > tail.length || tail.readUInt32LE(end) !== END_OF_DIRECTORY)
    throw new WheelError(path, 'is not a zip file');
  const count = tail.readUInt16LE(end + 10);
  const directory = await readAt(file, path, tail.readUInt32LE(end + 16), tail.readUInt32LE(end + 12));
  let at = 0;
  for (let entry = 0; entry < count; entry++) {
    if (at + 46 > directory.length || directory.readUInt32LE(at) !== DIRECTORY_ENTRY)
      throw new WheelError(path, `has a damaged directory at entry ${entry}`);
    const nameBytes = directory.readUInt16LE(at + 28);
    if (directory.toString('utf8', at + 46, at + 46 + nameBytes) === name) {
      return {
        method: directory.readUInt16LE(at + 10),
        packedBytes: directory.readUInt32LE(at + 20),
        offset: directory.readUInt32LE(at + 42),
      };
    }
    at += 46 + nameBytes + directory.readUInt16LE(at + 30) + directory.readUInt16LE(at + 32);
  }
  return undefined;
}

async function readAt(file: FileHandle, path: string, position: number, length: number): Promise<Buffer> {
  const { size } = await file.stat();
  if (position + length > size)
    throw new WheelError(path, `is cut short: ${size} bytes, and byte ${position + length} is needed`);
  const buffer = Buffer.alloc(length);
  await file.read(buffer, 0, length, position);
  return buffer;
}
