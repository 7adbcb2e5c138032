/** What a new user meets: each mistake gets one error with a code, what is known, and what to type, for people and as JSON. */
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';
import { expect, onTestFinished, test } from 'vitest';
import { proves } from '../proves.ts';
import { type CliOptions, makeProject, type Project } from '../support/cli.ts';
import { openDoor } from '../support/cli-door.ts';
import { freePort } from '../support/lookalike-project.ts';
import { filesBelow } from '../support/run-folder.ts';

interface Refusal {
  readonly code: string;
  readonly exit: number;
  /** What the message must say. */
  readonly says: RegExp;
}

const door = openDoor();

/** Tries the command for people and as JSON, and reads both aloud. Returns what people see. */
async function refused(project: Project, args: readonly string[], expected: Refusal, options: Partial<CliOptions> = {}) {
  const plain = await project.aerie(args, options);
  const asJson = await project.aerie([...args, '--json'], options); // after it: a run has one worker
  expect(plain.code, plain.stderr).toBe(expected.exit);
  expect(plain.stdout).toBe('');
  expect(plain.stderr).toContain(`error    ${expected.code}\n`);
  expect(plain.stderr).toMatch(/^try {6}\S/m);
  expect(plain.stderr).toMatch(expected.says);
  expectReadable(plain.stderr);

  expect(asJson.code).toBe(expected.exit);
  expect(asJson.stderr).toBe('');
  const document = asJson.json();
  expect(Object.keys(document)).toEqual(['aerie', 'error']);
  expect(Object.keys(document.error ?? {})).toEqual(['code', 'message', 'because', 'evidence', 'remedy', 'facts']);
  expect(document.error).toMatchObject({ code: expected.code, facts: expect.any(Object) });
  expect(document.error?.remedy.length).toBeGreaterThan(10);
  return { stderr: plain.stderr, error: document.error };
}

function expectReadable(text: string): void {
  expect(text).not.toMatch(/undefined|\[object|NaN|null\b/);
  expect(text).not.toMatch(/^\s+at .*[(:]\d+:\d+\)?$/m); // no stack trace
  for (const line of text.split('\n')) expect(line.length).toBeLessThan(400);
}

/** A run on a server that is not asked before the source is opened; `over` is laid over it. */
function attached(project: Project, over: object, port = 1): void {
  project.writeRows('prompts.jsonl', [{ prompt: 'Hello.' }]);
  project.writeRun('run.yaml', {
    run: 'r',
    model: 'm',
    servers: [{ engine: 'vllm', attach: `http://127.0.0.1:${port}` }],
    patience: '2s',
    partitions: [{ name: 'B1', from: 'prompts.jsonl' }],
    ...over,
  });
}

function embedded(project: Project, over: object = {}): void {
  project.writeRows('prompts.jsonl', [{ prompt: 'Hello.' }]);
  const base = { run: 'r', model: 'default', sampling: { 'max-tokens': 8 }, partitions: [{ name: 'B1', from: 'prompts.jsonl' }] };
  project.writeRun('run.yaml', { ...base, ...over });
}

test('a wrong command line: the nearest word, and the help to ask for', async () => {
  const project = door.through(makeProject());
  const usage = { code: 'usage.flag', exit: 2 };
  await refused(project, ['statsu', 'x'], { ...usage, says: /statsu.*did you mean `status`\?[\s\S]*try {6}aerie --help/ });
  await refused(project, ['run', '--frob', 'x'], {
    ...usage,
    says: /No flag registered for --frob[\s\S]*try {6}aerie run --help/,
  });
  // A flag is named as the help shows it, and as it is typed.
  await refused(project, ['run', '--retry-faild', 'x'], { ...usage, says: /--retry-faild, did you mean --retry-failed\?/ });
  await refused(project, ['run'], {
    ...usage,
    says: /Expected argument for RUN\.[\s\S]*aerie run --help {4}Nothing was started/,
  });
  await refused(project, ['export', 'run.yaml'], { ...usage, says: /Expected input for flag --for/ });
  await refused(project, ['export', 'r', '--for', 'x'], { ...usage, says: /specforge\|speculators/ });
});

test('a run file or folder that is not there, or is none', async () => {
  const project = door.through(makeProject());
  const missing = { code: 'run-file.missing', exit: 2, says: /There is no none\.yaml\.[\s\S]*Looked at .*[\s\S]*aerie init/ };
  for (const command of ['run', 'status']) await refused(project, [command, 'none.yaml'], missing);
  await refused(project, ['check', '.'], { code: 'run.absent', exit: 2, says: /\. is a folder without a run\.yaml/ });
  attached(project, {});
  await refused(project, ['status', 'run.yaml'], {
    code: 'run.absent',
    exit: 2,
    says: /Run r has not begun[\s\S]*try {6}aerie run run\.yaml/,
  });
  // The folder of a run file is not made a run folder.
  const beside = /\. is the folder of a run file, not a run folder\.[\s\S]*Give the run file: run\.yaml/;
  for (const command of ['run', 'status']) await refused(project, [command, '.'], { code: 'run.absent', exit: 2, says: beside });
  expect(readdirSync(project.folder).sort()).toEqual(['prompts.jsonl', 'run.yaml']);
});

test('a run file with mistakes: all of them, each with line and column, and nothing is started', async () => {
  const project = door.through(makeProject());
  project.write(
    'run.yaml',
    'run: r\nmodle: default\nsampling: { temperature: 5, max-tokns: 3 }\npartitions:\n  - name: B1\n    from: hf://x/y\n',
  );
  const { stderr, error } = await refused(project, ['run', 'run.yaml'], {
    code: 'run-file.wrong',
    exit: 2,
    says: /run\.yaml has 4 mistakes/,
  });
  for (const place of ['2:1  modle ', '3:26  sampling.temperature ', '3:29  sampling.max-tokns ', '6:11  partitions[0].from '])
    expect(stderr).toContain(`${project.path('run.yaml')}:${place}`);
  expect(stderr).toMatch(/did you mean model\?/);
  expect(error?.evidence?.length).toBe(4);
  project.write('run.yaml', 'run: r\nmodel:\n\t- x\n');
  await refused(project, ['run', 'run.yaml'], { code: 'run-file.wrong', exit: 2, says: /run\.yaml:3:1 +a tab stands/ });
  expect(readdirSync(project.folder)).toEqual(['run.yaml']);
});

test('a source that is missing, a folder, of another format, or damaged', async () => {
  const project = door.through(makeProject());
  const from = (source: string) => attached(project, { partitions: [{ name: 'B1', from: source }] });
  from('promts.jsonl');
  await refused(project, ['run', 'run.yaml'], {
    code: 'source.missing',
    exit: 2,
    says: /promts\.jsonl is not there[\s\S]*Did you mean .*prompts\.jsonl\?/,
  });
  project.write('folder/a.jsonl', '{"prompt":"x"}\n');
  from('folder');
  await refused(project, ['run', 'run.yaml'], { code: 'source.unreadable', exit: 2, says: /folder is a folder/ });
  project.write('rows.tsv', 'prompt\nx\n');
  from('rows.tsv');
  await refused(project, ['run', 'run.yaml'], { code: 'source.unreadable', exit: 2, says: /ends in \.tsv[\s\S]*\.jsonl\.gz/ });
  project.write('rows.parquet', 'prompt\nx\n');
  from('rows.parquet');
  await refused(project, ['run', 'run.yaml'], { code: 'source.unreadable', exit: 2, says: /do not begin with PAR1/ });
  project.write('rows.csv', 'prompt\nx,y\n');
  from('rows.csv');
  await refused(project, ['run', 'run.yaml', '--strict'], {
    code: 'source.row-refused',
    exit: 2,
    says: /Row 1 of .*rows\.csv is refused: ragged-row[\s\S]*x,y/,
  });
  project.write('cut.jsonl.gz', gzipSync('{"prompt":"x"}\n'.repeat(99)).subarray(0, 40));
  from('cut.jsonl.gz');
  await refused(project, ['run', 'run.yaml'], { code: 'source.unreadable', exit: 2, says: /breaks off as gzip[\s\S]*gzip -t/ });
  project.write('plain.jsonl.gz', '{"prompt":"x"}\n');
  from('plain.jsonl.gz');
  await refused(project, ['run', 'run.yaml'], { code: 'source.unreadable', exit: 2, says: /do not begin with 1f 8b/ });
});

test('a port where nothing listens: said at once, given up after the patience of the run file', async () => {
  const project = door.through(makeProject());
  const port = await freePort();
  attached(project, {}, port);
  const result = await project.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(4);
  expect(result.stderr).toMatch(/not ready \(nothing listens there \(ECONNREFUSED\)\); waiting at most 2 s/);
  expect(result.stderr).toContain('error    server.unreachable\n');
  expect(result.stderr).toMatch(new RegExp(`vllm-0 at http://127.0.0.1:${port} never became ready`));
  expect(result.stderr).toMatch(/Start the server, or correct attach: in the run file/);
  expectReadable(result.stderr);
  const preview = await project.aerie(['preview', 'run.yaml']);
  expect(preview.code, preview.stderr).toBe(4);
  expect(preview.stderr).toMatch(/try {6}Nothing of a preview is kept, and the run itself was not touched\.\n +Start the server/);
  expect(preview.stderr).not.toContain('aerie-preview-');
});

test('no way to the default model: every place that was tried, and the way around', async () => {
  const project = door.through(makeProject());
  embedded(project);
  project.write('bin/.keep', '');
  symlinkSync(process.execPath, project.path('bin/node'));
  const deadHub = `http://127.0.0.1:${await freePort()}`;
  const env = { AERIE_CACHE: project.path('cache'), AERIE_MODEL: undefined, PATH: project.path('bin'), HF_ENDPOINT: deadHub };
  const { error } = await refused(
    project,
    ['run', 'run.yaml'],
    { code: 'model.unavailable', exit: 3, says: /2 places were tried/ },
    { env },
  );
  expect(error?.evidence?.[0]).toMatch(/^model hub .*ECONNREFUSED/);
  expect(error?.evidence?.[1]).toMatch(/^Python package .*neither pip, pip3 nor python3 -m pip is installed/);
  expect(error?.remedy).toMatch(/AERIE_MODEL=\/path\/to\/model\.gguf/);

  const notModel = { AERIE_MODEL: project.path('prompts.jsonl') };
  const damaged = { code: 'model.damaged', exit: 3, says: /is not a GGUF file: it begins with/ };
  await refused(project, ['run', 'run.yaml'], damaged, { env: notModel });
  const absent = { code: 'model.unavailable', exit: 3, says: /AERIE_MODEL=.*none\.gguf cannot be read/ };
  await refused(project, ['run', 'run.yaml'], absent, { env: { AERIE_MODEL: project.path('none.gguf') } });
});

test('what policy forbids and a secret that is not set are refused before anything is made', async () => {
  const project = door.through(makeProject());
  embedded(project, {
    servers: [{ engine: 'embedded', flags: { 'kv-type': 'q8_0' } }],
    policy: [{ forbid: { 'kv-cache': 'below-16-bit' }, because: 'it degrades the answers', by: 'model owner' }],
  });
  const forbidden = {
    code: 'policy.forbids',
    exit: 2,
    says: /8\.5 bits per element[\s\S]*it degrades the answers \(decided by model owner\)/,
  };
  await refused(project, ['run', 'run.yaml'], forbidden);
  attached(project, { servers: [{ engine: 'vllm', attach: 'http://127.0.0.1:1', 'api-key': '$NO_SUCH_KEY' }] });
  const unset = { code: 'secret.missing', exit: 3, says: /NO_SUCH_KEY, the key of vllm-0, is not set[\s\S]*export NO_SUCH_KEY=/ };
  await refused(project, ['run', 'run.yaml'], unset, { env: { NO_SUCH_KEY: undefined } });
  expect(readdirSync(project.folder).sort()).toEqual(['prompts.jsonl', 'run.yaml']);
});

proves('secret:never-written', 'a key that the server refuses is named, and its value stands nowhere', async () => {
  const project = makeProject();
  const asked: (string | undefined)[] = [];
  const server = createServer((request, reply) => {
    asked.push(request.headers.authorization);
    const key = request.headers.authorization ?? '';
    reply.writeHead(request.url === '/health' ? 200 : 401).end(`{"error":"no such key ${key}"}`);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const address = server.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  const secret = 'sk-wrong-0123456789abcdef';
  attached(project, { servers: [{ engine: 'vllm', attach: `http://127.0.0.1:${port}`, 'api-key': '$MY_KEY' }] });
  const result = await project.aerie(['run', 'run.yaml'], { env: { MY_KEY: secret } });

  expect(result.code, result.stderr).toBe(4);
  expect(result.stderr).toMatch(/server\.rejects[\s\S]*answered 401[\s\S]*api-key: \$NAME/);
  expect(asked).toContain(`Bearer ${secret}`);
  expect(result.stdout + result.stderr).not.toContain(secret);
  writeFileSync(project.path('control.txt'), secret);
  const holding = filesBelow(project.folder).filter((path) => readFileSync(path).includes(secret));
  expect(holding).toEqual([project.path('control.txt')]);
});
