/** Any server that is already there: the whole main job on an engine that Aerie did not start, as each of the dialects. */
import { expect, onTestFinished, test } from 'vitest';
import type { TrainingRecord } from '../../src/shard/record.ts';
import { aerie, makeProject, type Project } from '../support/cli.ts';
import { openDoor } from '../support/cli-door.ts';
import { openFrontDoor } from '../support/front-door.ts';
import { startLookalike } from '../support/lookalike-bench.ts';
import { freePort, lookalikeProject } from '../support/lookalike-project.ts';
import { readExport } from '../support/read-export.mjs';
import { promptStates, query, readShardLines } from '../support/run-folder.ts';
import { makeSelfSigned } from '../support/self-signed.ts';
import { startEmbedded } from '../support/start-embedded.ts';

const commands = openDoor();

interface Attached {
  readonly engine: string;
  readonly attach: string;
}

const PROMPTS = [
  { messages: [{ role: 'user', content: 'hello' }] },
  {
    messages: [
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'old' },
      { role: 'user', content: 'two é 漢' },
    ],
  },
  { prompt: 'three' },
];

function attachedProject(servers: readonly object[], over: object = {}): Project {
  const project = commands.through(makeProject());
  project.writeRows('p.jsonl', PROMPTS);
  project.writeRun('run.yaml', {
    ...{ run: 'r', model: 'tiny', servers, sampling: { 'max-tokens': 24, seed: 3, temperature: 0.8 }, 'in-flight': 2 },
    partitions: [{ name: 'A', from: 'p.jsonl' }],
    ...over,
  });
  return project;
}

const recordsOf = (project: Project, partition = 'A'): TrainingRecord[] => readShardLines(project.path('runs/r'), partition);
const serverCounts = (records: readonly TrainingRecord[]) => {
  const counts: Record<string, number> = {};
  for (const { turns } of records) for (const { server } of turns) counts[server] = (counts[server] ?? 0) + 1;
  return counts;
};

async function embeddedAt(): Promise<string> {
  const engine = await startEmbedded(['--context', '1024', '--sequences', '2']);
  onTestFinished(engine.stop);
  return engine.baseUrl;
}

test.each(['embedded', 'vllm', 'sglang', 'openai'])('run, check and export on an engine attached as %s', async (engine) => {
  const attach = `${await embeddedAt()}/v1/`; // as it is pasted from another client
  const project = attachedProject([{ engine, attach }]);
  const result = await project.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(0);
  const records = recordsOf(project);
  expect(records.map(({ turns }) => turns.length).sort()).toEqual([1, 1, 2]);
  const isExact = engine !== 'openai';
  for (const { exact, inexactBecause, turns, provenance } of records) {
    expect([exact, inexactBecause === '']).toEqual([isExact, isExact]);
    expect(provenance).toMatchObject({ engine, model: 'tiny', kvCacheDtype: isExact ? 'float16' : 'unknown' });
    for (const { outputIds, promptIds, continues, usage, text } of turns) {
      expect([outputIds.length, continues + promptIds.length]).toEqual(isExact ? [usage.completion, usage.prompt] : [0, 0]);
      expect(usage.completion).toBeGreaterThan(0);
      expect(usage.prompt).toBeGreaterThan(0);
      expect(text).not.toBe('');
    }
  }
  expect(/records will NOT be exact/.test(result.stderr)).toBe(!isExact);
  const spent = records.flatMap(({ turns }) => turns).reduce((sum, { usage }) => sum + usage.completion, 0);
  expect(query(project.path('runs/r'), 'SELECT sum(tokens) AS tokens FROM records')).toEqual([{ tokens: spent }]);

  const checked = await project.aerie(['check', 'run.yaml', '--json']);
  const codes = (checked.json().data as { findings: { code: string; count: number }[] }).findings.map(({ code }) => code);
  expect(codes.includes('not-exact')).toBe(!isExact);
  expect(codes).not.toContain('flags-differ');
  const target = isExact ? 'speculators' : 'specforge'; // rows of ids, or of text where there are none
  const exported = await project.aerie(['export', 'run.yaml', '--for', target]);
  expect(exported.code, exported.stderr).toBe(0);
  const { tokenRows, conversationRows, findings } = readExport(project.path(`runs/r/export/${target}`));
  expect([tokenRows.length >= 3, conversationRows.length, findings]).toEqual(isExact ? [true, 0, []] : [false, 3, []]);
});

test('a preview on a text-only endpoint says so before anything is begun', async () => {
  const project = attachedProject([{ engine: 'openai', attach: await embeddedAt() }]);
  const shown = await project.aerie(['preview', 'run.yaml']);
  expect(shown.code, shown.stderr).toBe(0);
  expect(shown.stdout).toMatch(/exact {5}NO: the engine is openai/);
});

test.each([
  ['vllm', '0.10.1.1', 'none', false],
  ['vllm', '0.10.2', 'always', true],
  ['sglang', '0.5.12', 'none', false],
  ['sglang', '0.5.13', 'meta-info', true],
  ['sglang', '0.5.18', 'always', true],
  ['vllm', 'main', 'none', false], // no version to go by: what comes is looked at
])('%s %s with ids %s: exact is %s', async (engine, version, ids, exact) => {
  const project = commands.through(await lookalikeProject({ prompts: 3, scenario: { version, ids } }));
  project.change({ servers: [{ engine, attach: `http://127.0.0.1:${project.port}` }] });
  const result = await project.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(0);
  const records = recordsOf(project, 'B1');
  expect(records.map((record) => record.exact)).toEqual([exact, exact, exact]);
  for (const { turns, inexactBecause } of records) {
    expect(inexactBecause === '').toBe(exact);
    expect((turns[0]?.outputIds.length ?? 0) > 0).toBe(exact);
  }
});

test('a base path and a trusted certificate: all that is asked lies below the path; an unknown certificate is an error at once', async () => {
  const lookalike = await startLookalike();
  const tls = makeSelfSigned();
  const door = await openFrontDoor({ to: lookalike.engine.port, basePath: '/base/path', tls });
  const server: Attached = { engine: 'vllm', attach: `https://localhost:${door.port}/base/path` };
  const project = attachedProject([server], { model: 'lookalike' });

  const unknown = await project.aerie(['run', 'run.yaml']);
  expect(unknown.code, unknown.stderr).toBe(4);
  expect(unknown.stderr).toMatch(
    /server\.unreachable[\s\S]*self-signed \(DEPTH_ZERO_SELF_SIGNED_CERT\)[\s\S]*NODE_EXTRA_CA_CERTS=/,
  );
  expect(door.asked).toEqual([]);

  const ca = project.write('ca.pem', tls.cert);
  const trusted = await project.aerie(['run', 'run.yaml'], { env: { NODE_EXTRA_CA_CERTS: ca } });
  expect(trusted.code, trusted.stderr).toBe(0);
  expect(new Set(door.asked)).toContain('/base/path/v1/chat/completions');
  expect(door.asked.every((path) => path.startsWith('/base/path/'))).toBe(true);
  expect(recordsOf(project).length).toBe(3);
});

test('a certificate for another host, and TLS where there is none, are told apart', async () => {
  const lookalike = await startLookalike();
  const tls = makeSelfSigned('other.example');
  const door = await openFrontDoor({ to: lookalike.engine.port, tls });
  const project = attachedProject([{ engine: 'vllm', attach: `https://localhost:${door.port}` }], {
    model: 'lookalike',
    patience: '1s',
  });
  const ca = project.write('ca.pem', tls.cert);
  const other = await project.aerie(['run', 'run.yaml'], { env: { NODE_EXTRA_CA_CERTS: ca } });
  expect(other.code, other.stderr).toBe(4);
  expect(other.stderr).toMatch(/is for another host name \(ERR_TLS_CERT_ALTNAME_INVALID\)/);
  const plain = attachedProject([{ engine: 'vllm', attach: `https://localhost:${lookalike.engine.port}` }], { patience: '1s' });
  const result = await plain.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(4);
  expect(result.stderr).toMatch(/does not speak TLS there; write http:/);
});

test.each([
  ['openai', 401, '', /server\.rejects[\s\S]*401 to \/v1\/models: the key is wrong/],
  ['sglang', 403, '/v1/chat', /server\.rejects[\s\S]*HTTP 403[\s\S]*key is wrong or missing/],
  ['vllm', 404, '/v1/models', /server\.rejects[\s\S]*404 to \/v1\/models: there is no such path[\s\S]*base path/],
  ['openai', 404, '/v1/', /server\.rejects[\s\S]*HTTP 404[\s\S]*attach: or the name of the model/],
] as const)('%s: %i below %s is one clear error, not a wait', async (engine, status, below, message) => {
  const lookalike = await startLookalike();
  const door = await openFrontDoor({
    to: lookalike.engine.port,
    refuse: (path) => (path.startsWith(below) ? status : undefined),
  });
  const project = attachedProject([{ engine, attach: `http://127.0.0.1:${door.port}` }], { model: 'lookalike' });
  const result = await project.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(4);
  expect(result.stderr).toMatch(message);
  expect(recordsOf(project)).toEqual([]);
});

test('a proxy that keeps the metrics to itself costs facts, not the run; with a KV rule it costs the run', async () => {
  const lookalike = await startLookalike();
  const door = await openFrontDoor({ to: lookalike.engine.port, refuse: (path) => (path === '/metrics' ? 403 : undefined) });
  const servers = [{ engine: 'vllm', attach: `http://127.0.0.1:${door.port}` }];
  const project = attachedProject(servers, { model: 'lookalike' });
  const result = await project.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(0);
  expect(recordsOf(project).map(({ provenance }) => provenance.kvCacheDtype)).toEqual(['unknown', 'unknown', 'unknown']);

  const policy = [{ forbid: { 'kv-cache': 'below-16-bit' }, because: 'it matters', by: 'me' }];
  const ruled = (attach: string) => attachedProject([{ engine: 'vllm', attach }], { model: 'lookalike', policy });
  const kept = await ruled(lookalike.engine.baseUrl).aerie(['run', 'run.yaml']);
  expect(kept.code, kept.stderr).toBe(0);
  const broken = await ruled(`http://127.0.0.1:${door.port}`).aerie(['run', 'run.yaml']);
  expect(broken.stderr).toMatch(/policy\.broken[\s\S]*nothing says which type the KV cache has/);
  const fp8 = await startLookalike({ scenario: { serverInfo: { kv_cache_dtype: 'fp8_e4m3' } } });
  const forbidden = await ruled(fp8.engine.baseUrl).aerie(['run', 'run.yaml']);
  expect(forbidden.stderr).toMatch(/policy\.broken[\s\S]*the KV cache is fp8_e4m3, 8 bits/);
});

test('several endpoints: the slow one gets less, one that dies and comes back costs nothing', async () => {
  // The run lasts longer than a busy machine needs to start the dying one again.
  const fast = await startLookalike({ scenario: { latency: { kind: 'fixed', ms: 100 } } });
  const slow = await startLookalike({ scenario: { latency: { kind: 'fixed', ms: 800 } } });
  const faults = [{ when: { request: 10 }, do: 'die' }];
  const dying = await startLookalike({ scenario: { latency: { kind: 'fixed', ms: 100 }, faults } });
  const at = (engine: string, name: string, { engine: { baseUrl } }: typeof fast) => ({ engine, name, attach: baseUrl });
  const project = attachedProject([at('vllm', 'fast', fast), at('sglang', 'slow', slow), at('vllm', 'dying', dying)], {
    ...{ model: 'lookalike', 'in-flight': 6 },
  });
  project.writeRows(
    'p.jsonl',
    Array.from({ length: 300 }, (_, nth) => ({ prompt: `question ${nth}` })),
  );
  const run = project.start(['run', 'run.yaml']);
  await run.line(/dying: lost/);
  await startLookalike({ args: ['--port', String(dying.engine.port)], journal: dying.journal });
  const { code, stderr } = await run.ended;
  expect(code, stderr).toBe(0);
  expect(promptStates(project.path('runs/r'))).toEqual({ done: 300 });
  const records = recordsOf(project);
  expect(new Set(records.map(({ id }) => id)).size).toBe(300);
  expect(records.every(({ exact }) => exact)).toBe(true);
  const counts = serverCounts(records);
  expect(counts['dying']).toBeGreaterThan(9); // it answered again after its second start, or before its end
  expect(counts['slow']).toBeGreaterThan(0);
  expect(counts['fast']).toBeGreaterThan(counts['slow'] ?? 0);
  expect(stderr.match(/dying: ready at/g)?.length).toBeLessThanOrEqual(2);
});

test('an endpoint with another model is a mistake of the run file, whoever answers first, and the difference is shown', async () => {
  const one = await startLookalike();
  const other = await startLookalike({ args: ['--served-model-name', 'another'] });
  const project = attachedProject(
    [
      { engine: 'vllm', name: 'one', attach: one.engine.baseUrl },
      { engine: 'sglang', name: 'other', attach: other.engine.baseUrl },
    ],
    { model: 'lookalike', 'in-flight': 1 },
  );
  const result = await project.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(2);
  expect(recordsOf(project)).toEqual([]); // both have said what they are before anything is asked
  expect(result.stderr).toMatch(
    /run-file\.differs[\s\S]*model of the server: was (lookalike|another), is now (lookalike|another)/,
  );
});

test('an endpoint whose key is wrong is left out aloud, and the others go on', async () => {
  const good = await startLookalike();
  const door = await openFrontDoor({ to: good.engine.port, refuse: () => 401 });
  const project = attachedProject(
    [
      { engine: 'vllm', name: 'good', attach: good.engine.baseUrl },
      { engine: 'openai', name: 'closed', attach: `http://127.0.0.1:${door.port}` },
    ],
    { model: 'lookalike', 'in-flight': 1 },
  );
  project.writeRows(
    'p.jsonl',
    Array.from({ length: 40 }, (_, nth) => ({ prompt: `question ${nth}` })),
  );
  const result = await project.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(0);
  expect(result.stderr).toMatch(/closed: left out of this run, .*401 to \/v1\/models/);
  expect(serverCounts(recordsOf(project))).toEqual({ good: 40 });
});

test('an endpoint that is not there is named at the end, and no record comes from it', async () => {
  const good = await startLookalike();
  const project = attachedProject(
    [
      { engine: 'vllm', name: 'away', attach: `http://127.0.0.1:${await freePort()}` },
      { engine: 'vllm', name: 'good', attach: good.engine.baseUrl },
    ],
    { model: 'lookalike' },
  );
  const result = await aerie(['run', 'run.yaml', '--json'], { cwd: project.folder });
  expect(result.code, result.stderr).toBe(0);
  const because = expect.stringMatching(/not ready before the run ended \(nothing listens there/);
  expect(result.json().data.leftOut).toEqual([{ server: 'away', because }]);
  expect(Object.keys(serverCounts(recordsOf(project)))).toEqual(['good']);
});

test.each([401, 404])(
  'a %i in mid-run is looked at again; where it stays, that endpoint is left out and the others go on',
  async (status) => {
    const good = await startLookalike();
    const passing = await startLookalike();
    let chats = 0;
    const once = await openFrontDoor({
      to: passing.engine.port,
      refuse: (path) => (path.startsWith('/v1/chat') && ++chats === 5 ? status : undefined),
    });
    let others = 0;
    const closing = await startLookalike();
    const forGood = await openFrontDoor({
      to: closing.engine.port,
      refuse: (path) => (path.startsWith('/v1/chat') && ++others > 5 ? status : undefined),
    });
    const project = attachedProject(
      [
        { engine: 'vllm', name: 'good', attach: good.engine.baseUrl },
        { engine: 'vllm', name: 'once', attach: `http://127.0.0.1:${once.port}` },
        { engine: 'vllm', name: 'for-good', attach: `http://127.0.0.1:${forGood.port}` },
      ],
      { model: 'lookalike', 'in-flight': 6 },
    );
    // As many as it takes until the third is sure of itself: its rejections are seconds apart.
    project.writeRows(
      'p.jsonl',
      Array.from({ length: 400 }, (_, nth) => ({ prompt: `question ${nth}` })),
    );
    const result = await project.aerie(['run', 'run.yaml', '--json']);
    expect(result.code, result.stderr).toBe(0);
    expect(promptStates(project.path('runs/r'))).toEqual({ done: 400 });
    const leftOut: { server: string }[] = result.json().data.leftOut;
    expect(leftOut.map(({ server }) => server).filter((server) => server !== 'for-good')).toEqual([]);
    const counts = serverCounts(recordsOf(project));
    expect(counts['once']).toBeGreaterThan(4);
    expect(counts['for-good']).toBe(5);
  },
);

test('the last endpoint that turns everything away stops the run, resumable; one prompt that is turned away is set aside', async () => {
  const lookalike = await startLookalike();
  let isOpen = false;
  const door = await openFrontDoor({
    to: lookalike.engine.port,
    refuse: (path) => (path.startsWith('/v1/chat') && !isOpen ? 403 : undefined),
  });
  const project = attachedProject([{ engine: 'vllm', attach: `http://127.0.0.1:${door.port}` }], { model: 'lookalike' });
  const stopped = await project.aerie(['run', 'run.yaml']);
  expect(stopped.code, stopped.stderr).toBe(4);
  expect(stopped.stderr).toMatch(/server\.rejects[\s\S]*HTTP 403/);
  expect(promptStates(project.path('runs/r'))['aside']).toBeUndefined();
  isOpen = true;
  expect((await project.aerie(['run', 'run.yaml'])).code).toBe(0);
  expect(recordsOf(project).length).toBe(3);

  const filtered = commands.through(
    await lookalikeProject({
      prompts: 6,
      scenario: { faults: [{ when: { contains: 'Question 2' }, do: 'status', status: 403 }] },
    }),
  );
  const result = await filtered.aerie(['run', 'run.yaml', '--json']);
  expect(result.code, result.stderr).toBe(0);
  expect(result.json().data.partitions[0]).toMatchObject({ done: 5, aside: 1, setAsideBecause: { refused: 1 } });
});

test('exact and text-only endpoints in one run: each record says what it is', async () => {
  const project = commands.through(await lookalikeProject({ prompts: 40 }));
  const text = await startLookalike({ args: ['--served-model-name', 'lookalike'] });
  project.change({
    servers: [
      { engine: 'vllm', name: 'exact', attach: `http://127.0.0.1:${project.port}` },
      { engine: 'openai', name: 'text', attach: text.engine.baseUrl },
    ],
  });
  const result = await project.aerie(['run', 'run.yaml']);
  expect(result.code, result.stderr).toBe(0);
  const records = recordsOf(project, 'B1');
  expect(records.length).toBe(40);
  for (const { exact, turns } of records) expect(exact).toBe(turns.every(({ server }) => server === 'exact'));
  expect(Object.keys(serverCounts(records)).sort()).toEqual(['exact', 'text']);
});
