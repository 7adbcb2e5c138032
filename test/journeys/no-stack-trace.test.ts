/**
 * Hostile input of every kind ends in an answer or in an error of the table with its exit code, never in a stack trace:
 * command lines, run files, sources, the environment. Replies and run folders: no-stack-trace-*.test.ts beside it.
 * They go through the door of cli-door.ts.
 */
import { execFileSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { afterAll, expect } from 'vitest';
import { proves } from '../proves.ts';
import { makeProject, type Project } from '../support/cli.ts';
import { openDoor } from '../support/cli-door.ts';
import { expectEndsWell } from '../support/ends-well.ts';

/** Run files attach to a port where nothing listens, and give up at once. */
const RUN = {
  ...{ run: 'r', model: 'm', patience: '1s', servers: [{ engine: 'vllm', attach: 'http://127.0.0.1:1' }] },
  partitions: [{ name: 'B1', from: 'p.jsonl' }],
};

const shared: Project = openDoor().through(makeProject((remove) => afterAll(remove)));

const COMMAND_LINES: readonly (readonly string[])[] = [
  ...[
    ['run', ''],
    ['run', '/'],
    ['run', '/dev/null'],
    ['run', '/proc/self/mem'],
    ['status', '-'],
    ['run', '--', '--json'],
  ],
  ...[['run', 'x'.repeat(5000)], ['run', 'a', 'b'], ['run', '-x'], ['-x'], ['--'], [''], ['constructor'], ['__proto__']],
  ...[['status', '--json=maybe', 'x'], ['check', '\u{1f98a}\n\u001b[31m'], ['preview', '.'], ['help'], ['run', '--help', 'x']],
  ...[
    ['export', 'r.yaml', '--for', ''],
    ['export', 'r.yaml', '--for', 'specforge', '--to', ''],
  ],
  ...[['export', 'r.yaml', '--for', 'specforge', '--to', '/dev/null/x'], ['export', 'r.yaml', '--to'], ['export']],
  ...[
    ['init', '/dev/null/run.yaml'],
    ['init', '.'],
    ['init', ''],
    ['init', 'none/run.yaml'],
    ['init', 'a.yaml', '--run', '../x'],
  ],
  ...[
    ['init', 'b.yaml', '--attach', 'not a url'],
    ['init', 'c.yaml', '--from', 'none'],
    ['init', 'd.yaml', '--model', ''],
  ],
  ...[
    ['explain', ''],
    ['explain', '../../etc/passwd'],
    ['explain', 'hasOwnProperty'],
    ['doctor', ''],
    ['doctor', '/dev/null'],
  ],
];

proves(
  'error:never-a-stack',
  'command lines',
  async () => {
    shared.writeRun('r.yaml', RUN);
    for (const args of COMMAND_LINES) expectEndsWell(await shared.aerie(args), `aerie ${JSON.stringify(args)}`);
  },
  300_000,
);

const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${Array.from('bcdefghi', (key, at) => {
  const last = String.fromCharCode(key.charCodeAt(0) - 1);
  return `${key}: &${key} [${Array.from({ length: 9 }, () => `*${last}`).join(',')}]${at < 0 ? '' : '\n'}`;
}).join('')}`;
const json = (over: object) => JSON.stringify({ ...RUN, ...over });

const RUN_FILES: Readonly<Record<string, string | Uint8Array>> = {
  ...{ empty: '', null: 'null', list: '[]', text: 'just text', number: '3', nul: 'run: a\0b\n', bom: '\ufeffrun: r\n' },
  ...{ binary: Uint8Array.from({ length: 512 }, (_, at) => (at * 37) % 256), tab: 'run:\n\t- x\n', twice: 'run: a\nrun: b\n' },
  ...{ deep: '['.repeat(20_000), 'deep map': '{a: '.repeat(5_000), bomb, self: 'run: &a [*a]\n', alias: 'run: *nobody\n' },
  ...{
    tag: 'run: !!js/function "x"\n',
    docs: 'run: r\n---\nrun: s\n',
    merge: '<<: {run: r}\nmodel: m\n',
    long: `${'k'.repeat(100_000)}: 1\n`,
  },
  ...{ proto: '{"__proto__": {"run": "r"}, "constructor": 1, "run": "r"}', open: 'run: "', percent: '%YAML 9.9\n---\nrun: r\n' },
  ...{
    climbs: json({ run: '../../x' }),
    'no name': json({ run: '' }),
    'name is a map': json({ run: { a: 1 } }),
    dots: json({ run: '..' }),
  },
  ...{
    'huge in-flight': json({ 'in-flight': 1e300 }),
    'negative in-flight': json({ 'in-flight': -1 }),
    nan: `${json({}).slice(0, -1)},"in-flight": .nan}`,
  },
  ...{
    'partitions null': json({ partitions: null }),
    'none at all': json({ partitions: [] }),
    'partition climbs': json({ partitions: [{ name: '../x', from: 'p.jsonl' }] }),
  },
  ...{
    'two of a name': json({ partitions: [RUN.partitions[0], RUN.partitions[0]] }),
    'huge budget': json({ partitions: [{ name: 'B', from: 'p.jsonl', budget: '9e99M' }] }),
  },
  ...{
    'servers text': json({ servers: 'x' }),
    'attach is no url': json({ servers: [{ engine: 'vllm', attach: 'x y' }] }),
    'attach ftp': json({ servers: [{ engine: 'vllm', attach: 'ftp://h' }] }),
  },
  ...{
    'attach port': json({ servers: [{ engine: 'vllm', attach: 'http://127.0.0.1:99999' }] }),
    'key is a value': json({ servers: [{ engine: 'vllm', attach: 'http://h', 'api-key': 'sk' }] }),
  },
  ...{
    'sampling list': json({ sampling: [1] }),
    'seed text': json({ sampling: { seed: 'x' } }),
    'patience text': json({ patience: 'soon' }),
    'model map': json({ model: {} }),
  },
  ...{
    'lone surrogate': String.raw`{"run": "\ud800", "model": "m"}`,
    'policy text': json({ policy: 'no' }),
    'extra body': json({ 'extra-body': [[[]]] }),
  },
};

proves(
  'error:never-a-stack',
  'run files',
  async () => {
    shared.writeRows('p.jsonl', [{ prompt: 'Hello.' }]);
    for (const [name, text] of Object.entries(RUN_FILES)) {
      shared.write('hostile.yaml', text);
      const result = await shared.aerie(['run', 'hostile.yaml']);
      const code = expectEndsWell(result, `run file: ${name}`);
      // Whatever such a file means, nothing can have been generated.
      expect.soft(code, name).not.toBe('');
    }
    symlinkSync('loop.yaml', shared.path('loop.yaml'));
    expectEndsWell(await shared.aerie(['run', 'loop.yaml']), 'a link to itself');
  },
  300_000,
);

const line = (value: unknown) => `${JSON.stringify(value)}\n`;
const SOURCES: Readonly<Record<string, string | Uint8Array>> = {
  ...{
    'empty.jsonl': '',
    'newlines.jsonl': '\n\n\r\n',
    'nul.jsonl': '\0\0\n',
    'bytes.jsonl': Uint8Array.from([255, 254, 10, 192, 10]),
  },
  ...{
    'deep.jsonl': `${'['.repeat(100_000)}\n${'{"a":'.repeat(50_000)}\n`,
    'cut.jsonl': '{"prompt": "x',
    'number.jsonl': '1e999\n-0\n"x"\ntrue\nnull\n',
  },
  ...{ 'proto.jsonl': '{"__proto__": {"prompt": "x"}}\n{"constructor": 1}\n{"messages": {"length": 3}}\n' },
  ...{
    'odd.jsonl': [
      { messages: [null] },
      { messages: [[]] },
      { messages: 'x' },
      { prompt: {} },
      { turns: [1] },
      { conversations: [{}] },
    ]
      .map(line)
      .join(''),
  },
  ...{
    'roles.jsonl': [{ messages: [{ role: 7, content: 'x' }] }, { messages: [{ role: 'user', content: { a: 1 } }] }]
      .map(line)
      .join(''),
  },
  ...{
    'tools.jsonl': [
      { messages: [{ role: 'user', content: 'x' }], tools: 'x' },
      { messages: [{ role: 'user', content: 'x' }], tools: [[null]] },
    ]
      .map(line)
      .join(''),
  },
  ...{
    'text.jsonl.gz': 'no gzip',
    'cut.jsonl.gz': gzipSync(line({ prompt: 'x' })).subarray(0, 12),
    'twice.jsonl.gz': gzipSync(gzipSync('x')),
  },
  ...{
    'x.json': '{',
    'null.json': 'null',
    'deep.json': '['.repeat(100_000),
    'list.json': '[1,[],{}',
    'x.csv': '"a\n',
    'nul.csv': 'prompt\n"\0',
    'empty.csv': '',
  },
  ...{
    'x.parquet': 'PAR1',
    'cut.parquet': `PAR1${'\0'.repeat(64)}PAR1`,
    'huge.parquet': Uint8Array.from([...Buffer.from('PAR1'), 255, 255, 255, 127, ...Buffer.from('PAR1')]),
  },
  ...{ 'empty.parquet': '', 'unknown.xyz': 'x', plainname: 'x' },
};

proves(
  'error:never-a-stack',
  'sources',
  async () => {
    for (const [name, content] of Object.entries(SOURCES)) {
      shared.write(name, content);
      shared.writeRun('s.yaml', {
        ...RUN,
        run: `s-${name.replaceAll(/[^a-z]/g, '-')}`,
        partitions: [{ name: 'B1', from: name }],
      });
      expectEndsWell(await shared.aerie(['run', 's.yaml']), `source ${name}`);
    }
    execFileSync('mkfifo', [shared.path('pipe.jsonl')]);
    symlinkSync('loop.jsonl', shared.path('loop.jsonl'));
    for (const from of [
      'pipe.jsonl',
      'loop.jsonl',
      '/dev/null',
      '/proc/self/mem',
      '.',
      'p.jsonl/x',
      'hf://',
      'hf://datasets/a',
      '*.jsonl',
    ]) {
      shared.writeRun('s.yaml', { ...RUN, run: 's-odd', partitions: [{ name: 'B1', from }] });
      expectEndsWell(await shared.aerie(['run', 's.yaml'], { env: { HF_ENDPOINT: 'http://127.0.0.1:1' } }), `source ${from}`);
    }
  },
  300_000,
);

proves(
  'error:never-a-stack',
  'the environment',
  async () => {
    shared.writeRun('e.yaml', { run: 'e', model: 'default', partitions: RUN.partitions });
    shared.write('bin/.keep', '');
    const dead = {
      AERIE_MODEL: undefined,
      AERIE_CACHE: shared.path('no-cache'),
      PATH: shared.path('bin'),
      HF_ENDPOINT: 'http://127.0.0.1:1',
    };
    const environments: readonly Readonly<Record<string, string | undefined>>[] = [
      ...[
        dead,
        { ...dead, AERIE_CACHE: '/dev/null' },
        { ...dead, AERIE_CACHE: '/proc/nowhere' },
        { ...dead, HF_ENDPOINT: 'not a url' },
      ],
      ...[
        { ...dead, AERIE_MODEL: '.' },
        { ...dead, AERIE_MODEL: '/dev/null' },
        { ...dead, AERIE_MODEL: 'none' },
        { ...dead, AERIE_MODEL: '' },
      ],
      ...[
        { ...dead, https_proxy: 'nonsense', http_proxy: ':::' },
        { ...dead, HF_TOKEN: 'hf_\nx' },
        { ...dead, HOME: undefined, AERIE_CACHE: undefined },
      ],
      ...[
        { ...dead, HOME: '/dev/null', AERIE_CACHE: undefined },
        { ...dead, TMPDIR: '/none', AERIE_SEAL_BYTES: 'many', LANG: 'xx', TERM: '' },
      ],
    ];
    for (const env of environments) {
      expectEndsWell(await shared.aerie(['run', 'e.yaml'], { env }), `run with ${JSON.stringify(env)}`);
    }
  },
  600_000,
);
