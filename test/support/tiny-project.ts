/** A project on the embedded engine and a tiny model with random weights: nothing is downloaded, one thread is used. */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { makeProject, type Project } from './cli.ts';
import { writeTinyGguf } from './make-gguf.ts';

export const MAX_TOKENS = 24;

/** Two turns, a system prompt, a bad row, a duplicate, and a source in gzip. */
export const SOURCES = {
  A: [
    { messages: [{ role: 'user', content: 'hello' }] },
    {
      messages: [
        { role: 'user', content: 'the answer' },
        { role: 'assistant', content: 'old' },
        { role: 'user', content: 'and then' },
      ],
    },
    { messages: [{ role: 'user', content: '' }] },
    { prompt: 'hello' },
  ],
  B: [
    {
      messages: [
        { role: 'system', content: 'You are brief.' },
        { role: 'user', content: 'one' },
      ],
    },
    {
      conversations: [
        { from: 'human', value: 'two é 漢' },
        { from: 'gpt', value: 'old' },
        { from: 'human', value: 'three' },
      ],
    },
  ],
  C: [{ prompt: 'in a gzip file' }, { prompt: 'another one' }],
};

export async function tinyProject(over: object = {}, ...whenOver: Parameters<typeof makeProject>): Promise<Project> {
  const project = makeProject(...whenOver);
  await writeTinyGguf(project.path('tiny.gguf'), { seed: 1 });
  const text = (rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join('');
  project.write('a.jsonl', `${text(SOURCES.A)}this is not JSON\n`);
  project.write('b.jsonl', text(SOURCES.B));
  project.write('c.jsonl.gz', gzipSync(text(SOURCES.C)));
  project.writeRun('run.yaml', {
    run: 'r',
    model: 'tiny.gguf',
    servers: [{ engine: 'embedded', flags: { threads: 1, context: 1024, sequences: 4 } }],
    sampling: { temperature: 0.8, 'max-tokens': MAX_TOKENS, seed: 11 },
    partitions: [
      { name: 'A', from: 'a.jsonl' },
      { name: 'B', from: 'b.jsonl' },
      { name: 'C', from: 'c.jsonl.gz' },
    ],
    ...over,
  });
  return project;
}

/** The id as DESIGN §6 defines it, written out once more without Aerie's code: 26 base32 characters of a sha256. */
export function idByHand(messages: readonly { readonly role: string; readonly content: string }[]): string {
  const text = JSON.stringify({ messages: messages.map(({ role, content }) => ({ role, content })), tools: [] });
  const bits = [...createHash('sha256').update(text).digest()].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const letters = bits.match(/.{5}/g)?.slice(0, 26) ?? [];
  return letters.map((five) => 'abcdefghijklmnopqrstuvwxyz234567'[Number.parseInt(five, 2)]).join('');
}
