import { expect, test } from 'vitest';
import { readRunFile } from '../spec/read-run-file.ts';
import { describeSampling } from './describe-sampling.ts';

const said = (text: string) => describeSampling(readRunFile(`run: r\nmodel: default\n${text}`, '/p/run.yaml'));
const SENT = 'all of it is sent with every request: defaults of the server (generation_config.json) do not apply';

test('partitions that are asked alike are one line', () => {
  expect(said('partitions: [{ name: A, from: a.jsonl }, { name: B, from: b.jsonl }]\n')).toEqual([
    'asked with temperature 0.7, top-p off, top-k off, min-p and repetition penalty off, at most 2,048 tokens, seed 0',
    SENT,
  ]);
});

test('a mixture, an override and what is laid over the body are said', () => {
  const sampling = '{ temperature: 1, top-k: 20, temperature-mixture: [{ temperature: 0, share: 0.3 }], thinking: false }';
  const own = '{ temperature: 0.2, top-p: 0.9, stop: ["END"], extra-body: { min_p: 0.1 } }';
  expect(
    said(`sampling: ${sampling}\npartitions: [{ name: A, from: a.jsonl }, { name: B, from: b.jsonl, sampling: ${own} }]\n`),
  ).toEqual([
    'A: asked with temperature 0 for 30 %, 1 for 70 %, top-p off, top-k 20, min-p and repetition penalty off, at most 2,048 tokens, seed 0, template {"enable_thinking":false}',
    'B: asked with temperature 0.2, top-p 0.9, top-k 20, min-p and repetition penalty off, at most 2,048 tokens, seed 0, stop ["END"], template {"enable_thinking":false}, and, laid over these, {"min_p":0.1}',
    SENT,
  ]);
});

test('that answers are continued is said', () => {
  expect(said('partitions: [{ name: A, from: a.jsonl, truncated: continue, continuations: 3 }]\n')[0]).toMatch(
    /at most 2,048 tokens, seed 0; an answer cut there is continued, up to 3 times$/,
  );
});
