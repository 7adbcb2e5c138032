/**
 * What a survey says → its parts. Pure. Whatever does not come whole is a part that is late, never one that is empty.
 * What stands in the frames comes from other processes and files: it is read as data and nothing more.
 */
import { constants, gunzipSync } from 'node:zlib';
import { HEAD_MOST } from './survey-functions.ts';

export interface SurveyPart {
  /** Of the command that said it; undefined = it was not there in time. */
  readonly status: number | undefined;
  readonly bytes: Buffer;
}

export interface SurveyParts {
  readonly parts: ReadonlyMap<string, SurveyPart>;
  /** The script came to its end. */
  readonly isWhole: boolean;
}

const NAME = /^[a-z][a-z0-9]*$/;

export function readSurvey(text: string, nonce: string): SurveyParts {
  const parts = new Map<string, SurveyPart>();
  let isWhole = false;
  // Setup files of a shell may print before the first frame.
  let at = text.indexOf(`${nonce} `);
  while (at >= 0 && text.startsWith(`${nonce} `, at)) {
    const eol = text.indexOf('\n', at);
    if (eol < 0) break;
    const [, name = '', status = '', length = ''] = text.slice(at, eol).split(' ');
    const count = Number(length);
    if (!NAME.test(name) || !Number.isSafeInteger(count) || count < 0 || eol + 1 + count > text.length) break;
    if (name === 'end') {
      isWhole = status === '0';
      break;
    }
    const bytes = unpack(Buffer.from(text.slice(eol + 1, eol + 1 + count), 'base64'));
    parts.set(name, { status: /^\d+$/.test(status) ? Number(status) : undefined, bytes });
    at = eol + 1 + count + 1;
  }
  return { parts, isWhole };
}

/** The beginning of a packed log is cut where it was long enough: what came is unpacked. */
export function unpack(bytes: Buffer): Buffer {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  try {
    return gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: HEAD_MOST + 2 ** 20 });
  } catch {
    return Buffer.alloc(0);
  }
}
