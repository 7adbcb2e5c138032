/**
 * The chat template of a run's model, for servers whose prompts are rendered here: from the run folder where it was kept, from
 * the model's folder where that is on this machine, else from the hub. Two small files; no weight is ever fetched.
 *
 * What is found is kept in `tokenizer/` of the run folder, so that a run that is resumed renders as it began. Nothing is
 * thrown for what cannot be had: then records are not exact, and the reason names every place that was looked at.
 */
import { mkdir } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import type { FoundTemplate } from '../../base/prompt-template.ts';
import type { ServerFacts } from '../../engine/dialect.ts';
import { findHubFile, type HubAccess, HubError } from '../../host/hub-files.ts';
import { readText } from '../../host/read-text.ts';
import type { Machine } from '../../machine/machine.ts';
import { readMachineText } from '../../machine/read-text.ts';
import { replaceFile } from '../../shard/durable-file.ts';
import { openPromptTemplate } from '../../tokens/prompt-template.ts';

const CONFIG = 'tokenizer_config.json';
const JINJA = 'chat_template.jinja';
/** The largest in use have 2 MB, most of it the names of reserved tokens. */
const MOST_BYTES = 16 * 2 ** 20;

export interface TemplatePlaces {
  /** The run file's name of the model; a path lies beside the run file. */
  readonly model: string;
  readonly runFile: string;
  readonly runFolder: string;
  readonly access: HubAccess;
  /** Where the server runs: a path it names lies there. */
  readonly machine?: Machine;
}

type Texts = Readonly<Partial<Record<typeof CONFIG | typeof JINJA, string>>>;

export async function obtainTemplate(
  places: TemplatePlaces,
  facts: Pick<ServerFacts, 'model' | 'revision'>,
): Promise<FoundTemplate> {
  const kept = join(places.runFolder, 'tokenizer');
  const names = [...new Set([places.model, facts.model])];
  const looked: string[] = [];
  const folders = names
    .filter((name) => name === places.model || isAbsolute(name))
    .map((name) => resolve(dirname(places.runFile), name));
  const there = await readThere(names, places.machine);
  for (const { texts, place } of [...(await readHere([kept, ...folders])), ...there]) {
    const found = open(texts, looked, place);
    if (found !== undefined && place !== kept) await keep(kept, found.texts);
    if (found !== undefined) return found.template;
  }
  for (const repo of names.filter((name) => /^[\w.-]+\/[\w.-]+$/.test(name))) {
    const texts = await readHub(repo, facts.revision || 'main', places.access);
    const found = typeof texts === 'string' ? void looked.push(texts) : open(texts, looked, `model hub ${repo}`);
    if (found !== undefined) await keep(kept, found.texts);
    if (found !== undefined) return found.template;
  }
  return { kind: 'none', because: `the chat template of its model is not at hand (${looked.join('; ')})` };
}

/** undefined: there is none. One that is there and cannot be rendered is the answer too: no other place has a better one. */
function open(texts: Texts, looked: string[], place: string): { template: FoundTemplate; texts: Texts } | undefined {
  const { [CONFIG]: written, [JINJA]: jinja } = texts;
  const config = written === undefined ? {} : parse(written);
  if (jinja !== undefined || config['chat_template'] !== undefined)
    return { template: openPromptTemplate({ config, jinja }), texts };
  looked.push(`${place}: neither ${JINJA} nor a template in ${CONFIG}`);
  return undefined;
}

interface ReadPlace {
  readonly place: string;
  readonly texts: Texts;
}

function readHere(folders: readonly string[]): Promise<ReadPlace[]> {
  return Promise.all(folders.map(async (folder) => ({ place: folder, texts: await readFolder(folder) })));
}

async function readThere(names: readonly string[], machine: Machine | undefined): Promise<ReadPlace[]> {
  if (machine === undefined || machine.isHere) return [];
  const folders = names.filter((name) => isAbsolute(name));
  return Promise.all(
    folders.map(async (folder) => {
      const texts: Record<string, string> = {};
      for (const name of [CONFIG, JINJA]) {
        const text = await readMachineText(machine, `${folder}/${name}`, MOST_BYTES);
        if (text !== undefined) texts[name] = text;
      }
      return { place: `${folder} on ${machine.name}`, texts };
    }),
  );
}

async function readFolder(folder: string): Promise<Texts> {
  const texts: Record<string, string> = {};
  for (const name of [CONFIG, JINJA]) {
    const text = await readText(join(folder, name), MOST_BYTES).catch(() => undefined);
    if (text !== undefined) texts[name] = text;
  }
  return texts;
}

/** A sentence where the hub does not give them. */
async function readHub(repo: string, revision: string, access: HubAccess): Promise<Texts | string> {
  try {
    const texts: Record<string, string> = {};
    for (const path of [CONFIG, JINJA]) {
      const file = await findHubFile({ repo, path, revision }, access);
      if (file === undefined) continue;
      if (file.bytes > MOST_BYTES) return `model hub ${repo}: ${path} has ${file.bytes} bytes`;
      const pieces: Uint8Array[] = [];
      for await (const piece of await file.open()) pieces.push(piece);
      texts[path] = Buffer.concat(pieces).toString('utf8');
    }
    return texts;
  } catch (thrown) {
    access.signal?.throwIfAborted();
    if (!(thrown instanceof HubError)) throw thrown;
    return `model hub ${repo}: ${thrown.message}`;
  }
}

/** A run folder that takes no files says so at its first record; until then the template is at hand all the same. */
async function keep(folder: string, texts: Texts): Promise<void> {
  try {
    await mkdir(folder, { recursive: true });
    for (const [name, text] of Object.entries(texts)) await replaceFile(join(folder, name), text);
  } catch {
    // Looked for again at the next start.
  }
}

function parse(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
