/**
 * `tokenizer/` in the run folder, so that `aerie check` can decode ids and a trainer has the tokenizer of its data.
 * Converted from the GGUF's own vocabulary where the embedded engine shows it; where a server shows none there is no
 * folder, and `check` says that it has no decoder.
 */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readText } from '../host/read-text.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { replaceFile } from '../shard/durable-file.ts';
import { type Decoder, openDecoder } from '../tokens/decoder.ts';
import { type GgufVocabulary, renderTokenizerFiles } from '../tokens/tokenizer-json.ts';

const FILES = { tokenizer: 'tokenizer.json', config: 'tokenizer_config.json' } as const;
/** The largest vocabularies in use make files of some 35 MB. */
const MOST_BYTES = 256 * 2 ** 20;
/** A vocabulary of 150,000 tokens is a few MB over loopback. */
const TIMEOUT_MS = 30_000;

/** Writes the folder once. What a server answers is untrusted: anything unexpected means no tokenizer. */
export async function keepTokenizer(endpoint: Endpoint, runFolder: string): Promise<void> {
  const folder = join(runFolder, 'tokenizer');
  if (endpoint.facts.templateHash === '' || (await readJson(join(folder, FILES.config))) !== undefined) return;
  const reply = await endpoint.control.send({ method: 'GET', path: '/tokenizer' }, AbortSignal.timeout(TIMEOUT_MS));
  if (reply.kind !== 'http' || reply.status !== 200) return;
  let files: ReturnType<typeof renderTokenizerFiles>;
  try {
    files = renderTokenizerFiles(JSON.parse(reply.body.take()) as GgufVocabulary);
  } catch {
    return;
  }
  if (files === undefined) return;
  await mkdir(folder, { recursive: true });
  await replaceFile(join(folder, FILES.tokenizer), JSON.stringify(files.tokenizer));
  await replaceFile(join(folder, FILES.config), JSON.stringify(files.config, undefined, 2));
}

/** undefined where the run has no tokenizer. */
export async function openRunDecoder(runFolder: string): Promise<Decoder | undefined> {
  const tokenizer = await readJson(join(runFolder, 'tokenizer', FILES.tokenizer));
  const config = await readJson(join(runFolder, 'tokenizer', FILES.config));
  return tokenizer === undefined || config === undefined ? undefined : openDecoder(tokenizer, config);
}

async function readJson(path: string): Promise<object | undefined> {
  try {
    return JSON.parse(await readText(path, MOST_BYTES)) as object;
  } catch {
    return undefined;
  }
}
