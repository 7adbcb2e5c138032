/** Tools, on a server that calls them: definitions go out, calls come back, results of the source are given, to the end or as far as they go. */
import { expect, test } from 'vitest';
import type { TrainingRecord } from '../../src/shard/record.ts';
import { openDoor } from '../support/cli-door.ts';
import { type LookalikeProject, lookalikeProject } from '../support/lookalike-project.ts';
import { readExport } from '../support/read-export.mjs';
import { readParquetFolder } from '../support/read-parquet.ts';
import { promptStates, readShardLines } from '../support/run-folder.ts';

const door = openDoor();

const look = {
  type: 'function',
  function: { name: 'look', description: 'Weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
};
const user = (content: string) => ({ role: 'user', content });
const called = (...names: string[]) => ({
  role: 'assistant',
  content: '',
  tool_calls: names.map((name, at) => ({ id: `old-${at}`, type: 'function', function: { name, arguments: '{}' } })),
});
const result = (content: string, at = 0) => ({ role: 'tool', tool_call_id: `old-${at}`, content });
const calls = (...cities: string[]) =>
  cities.map((city) => `<tool_call>\n{"name": "look", "arguments": {"city": "${city}"}}\n</tool_call>`).join('\n');

/** One row for each way that a conversation with tools can go. */
const ROWS = {
  results: [user('Weather in Wien?'), called('look'), result('rain'), { role: 'assistant', content: 'old' }, user('Thanks!')],
  parallel: [user('Wien and Graz?'), called('look', 'look'), result('sun'), result('fog', 1)],
  inARow: [user('Linz, then?'), called('look'), result('snow'), called('look'), result('hail')],
  missing: [user('Weather in Bregenz?'), { role: 'assistant', content: 'old' }, user('And then?')],
  otherTool: [user('Weather in Eisenstadt?'), called('book'), result('booked')],
  noCall: [user('Hello.'), called('look'), result('unasked'), { role: 'assistant', content: 'old' }, user('Bye.')],
};
type Way = keyof typeof ROWS;
const ANSWERS: readonly (readonly [string, string])[] = [
  ['Weather in Wien', calls('Wien')],
  ['Wien and Graz', `I look at both.\n${calls('Wien', 'Graz')}`],
  ['Linz, then', calls('Linz')],
  ['snow', calls('Linz Land')],
  ['Weather in', calls('somewhere')],
];

interface ToolRun {
  readonly engine: string;
  readonly version?: string;
  readonly answers?: typeof ANSWERS;
  readonly faults?: readonly object[];
  readonly over?: object;
}

async function toolProject({ engine, version = '0.11.0', answers = ANSWERS, faults = [], over = {} }: ToolRun) {
  const says = answers.map(([lastContains, text]) => ({ when: { lastContains }, do: 'say', text }));
  const project = door.through(await lookalikeProject({ prompts: 0, scenario: { version, faults: [...faults, ...says] } }));
  project.writeRows(
    'prompts.jsonl',
    Object.values(ROWS).map((messages) => ({ tools: [look], messages })),
  );
  project.change({
    servers: [{ engine, attach: `http://127.0.0.1:${project.port}` }],
    sampling: { 'max-tokens': 400, seed: 7 },
    partitions: [{ name: 'B1', from: 'prompts.jsonl', ...over }],
  });
  return project;
}

function recordOf(project: LookalikeProject, way: Way): TrainingRecord {
  const record = readShardLines(project.runFolder, 'B1').find(({ messages }) => messages[0]?.content === ROWS[way][0]?.content);
  if (record === undefined) throw new Error(`no record for ${way}`);
  return record;
}

const argumentsOf = ({ turns }: TrainingRecord) => turns.map(({ toolCalls }) => toolCalls.map((call) => call.arguments));
/** The lookalike's ids are bytes and five specials. */
const read = (ids: readonly number[]) => Buffer.from(ids.filter((id) => id > 2 && id < 259).map((id) => id - 3)).toString();

async function runToEnd(project: LookalikeProject): Promise<void> {
  const ran = await project.aerie(['run', 'run.yaml']);
  expect(ran.code, ran.stderr).toBe(0);
  expect(promptStates(project.runFolder)).toEqual({ done: Object.keys(ROWS).length });
}

test.each([
  ['vllm', '0.11.0'],
  ['sglang', '0.5.18'],
  ['openai', ''],
])('%s %s: conversations go on with the source’s results, and end where it has none', async (engine, version) => {
  const project = await toolProject({ engine, version });
  await runToEnd(project);
  const isExact = engine !== 'openai';

  const whole = recordOf(project, 'results');
  expect(argumentsOf(whole)).toEqual([['{"city": "Wien"}'], [], []]);
  expect([whole.flags, whole.turns.map(({ finish }) => finish)]).toEqual([[], ['tool-calls', 'stop', 'stop']]);
  expect(argumentsOf(recordOf(project, 'parallel'))).toEqual([['{"city": "Wien"}', '{"city": "Graz"}'], []]);
  expect(recordOf(project, 'parallel').turns[0]?.text).toBe('I look at both.');
  expect(argumentsOf(recordOf(project, 'inARow'))).toEqual([['{"city": "Linz"}'], ['{"city": "Linz Land"}'], []]);
  expect(argumentsOf(recordOf(project, 'noCall'))).toEqual([[], []]);
  for (const way of ['missing', 'otherTool'] as const) {
    const { flags, turns } = recordOf(project, way);
    expect([flags, turns.length, turns[0]?.finish]).toEqual([['tool-result-missing'], 1, 'tool-calls']);
  }

  for (const way of Object.keys(ROWS) as Way[]) {
    const { turns, tools, exact } = recordOf(project, way);
    expect([exact, tools]).toEqual([isExact, [JSON.stringify(look)]]);
    if (!isExact) continue;
    expect(read(turns[0]?.promptIds ?? [])).toContain(JSON.stringify(look)); // the definitions were sent
    expect(turns.slice(1).every(({ continues }) => continues > 0)).toBe(true);
    for (const { outputIds, toolCalls } of turns) expect(read(outputIds).split('<tool_call>').length - 1).toBe(toolCalls.length);
  }
  const given = (way: Way, turn: number) => read(recordOf(project, way).turns[turn]?.promptIds ?? []);
  if (isExact) {
    expect([given('results', 1), given('parallel', 1), given('inARow', 2)]).toEqual(['\nrain\n', '\nsun\nfog\n', '\nhail\n']);
    expect(given('noCall', 1)).not.toContain('unasked');
  }
});

test('check finds nothing wrong, and every export is what its readers take', async () => {
  const project = await toolProject({ engine: 'vllm' });
  await runToEnd(project);
  const checked = await project.aerie(['check', 'run.yaml', '--json']);
  expect(checked.code, checked.stdout).toBe(0);
  const { findings } = checked.json().data as { findings: { code: string; severity: string; count: number }[] };
  expect(findings.filter(({ severity }) => severity === 'error')).toEqual([]);
  expect(findings.find(({ code }) => code === 'tool-result-missing')).toMatchObject({ count: 2 });

  for (const target of ['speculators', 'specforge', 'automodel']) {
    const exported = await project.aerie(['export', 'run.yaml', '--for', target]);
    expect(exported.code, exported.stderr).toBe(0);
    const { tokenRows, messageRows, conversationRows, findings: wrong } = readExport(project.path(`runs/r/export/${target}`));
    expect(wrong).toEqual([]);
    if (target === 'automodel') {
      expect(messageRows.length).toBe(6);
      expect(messageRows.every(({ tools }) => JSON.stringify(tools) === JSON.stringify([look]))).toBe(true);
      const parallel = messageRows.find(({ messages }) => messages[0]?.content.startsWith('Wien and Graz'));
      expect(parallel?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant']);
      const [, asked, ...results] = parallel?.messages ?? [];
      const ids = ((asked?.tool_calls ?? []) as { id: string }[]).map(({ id }) => id);
      expect(results.slice(0, 2).map((message) => message.tool_call_id)).toEqual(ids);
    } else {
      expect([tokenRows.length, conversationRows.length]).toEqual([6, 0]); // one sequence for each conversation
      for (const { input_ids: ids, loss_mask: mask, primary_id: id } of tokenRows) {
        const record = readShardLines(project.runFolder, 'B1').find((one) => one.id === id);
        expect(ids.filter((_, at) => mask[at] === 1)).toEqual(record?.turns.flatMap(({ outputIds }) => outputIds));
      }
    }
  }
});

test('trainers without a place for tools are given none, with the count; Parquet has rows of both kinds', async () => {
  const project = await toolProject({ engine: 'vllm' });
  await runToEnd(project);
  for (const target of ['modelopt', 'eagle']) {
    const exported = await project.aerie(['export', 'run.yaml', '--for', target]);
    expect(exported.stdout).toMatch(/5 left out of conversations: an answer calls a tool/);
    expect(exported.stdout).toMatch(/1 left out of conversations: the model was shown tools/);
    expect(readExport(project.path(`runs/r/export/${target}`)).files).toEqual([]);
  }
  expect((await project.aerie(['export', 'run.yaml', '--for', 'parquet'])).code).toBe(0);
  const { rows } = await readParquetFolder(project.path('runs/r/export/parquet/messages'));
  expect(rows.map(({ tools }) => tools)).toEqual(Array.from({ length: 6 }, () => JSON.stringify([look])));
  expect((await readParquetFolder(project.path('runs/r/export/parquet/tokens'))).rows.length).toBe(6);
});

test('a call that the template writes otherwise than the model did is a row for each turn, flagged', async () => {
  const compact = '<tool_call>\n{"name":"look","arguments":{"city":"Wien"}}\n</tool_call>';
  const project = await toolProject({ engine: 'vllm', answers: [['Weather in Wien', compact], ...ANSWERS.slice(1)] });
  await runToEnd(project);
  const { flags, turns } = recordOf(project, 'results');
  expect([flags, turns.map(({ continues }) => continues > 0)]).toEqual([['history-retokenised'], [false, false, true]]);
  expect(read(turns[0]?.outputIds ?? [])).toBe(compact);
  expect((await project.aerie(['check', 'run.yaml'])).code).toBe(0);
});

test('a worker killed behind a call goes on with the result, and does not call again', async () => {
  const project = await toolProject({ engine: 'vllm', faults: [{ when: { lastContains: 'rain' }, do: 'hang' }] });
  const asked = (text: string) =>
    project.journal().filter((line) => line.event === 'received' && JSON.stringify(line.input).includes(text));
  const worker = project.start(['run', 'run.yaml']);
  await expect.poll(() => asked('"content":"rain"').length, { timeout: 60_000, interval: 20 }).toBe(1);
  await expect.poll(() => project.inFlight(), { timeout: 60_000, interval: 20 }).toBe(1);
  await expect.poll(() => promptStates(project.runFolder)['done'] ?? 0, { timeout: 60_000, interval: 20 }).toBe(5);
  worker.kill('SIGKILL');
  await worker.ended;
  const before = asked('Weather in Wien').length;
  await project.clearFaults();
  await runToEnd(project);
  expect([before, asked('Weather in Wien').length]).toEqual([2, 4]); // the result again, and the thanks; not the question
  expect(argumentsOf(recordOf(project, 'results'))).toEqual([['{"city": "Wien"}'], [], []]);
});

test('turns: last keeps the calls and results of the source, and answers what comes after them', async () => {
  const project = await toolProject({ engine: 'vllm', over: { turns: 'last' } });
  await runToEnd(project);
  const { turns, messages, flags } = recordOf(project, 'parallel');
  expect([turns.length, flags, messages.map(({ role }) => role)]).toEqual([1, [], ['user', 'assistant', 'tool', 'tool']]);
  expect(read(turns[0]?.promptIds ?? [])).toContain('<tool_call>\n{"name": "look", "arguments": {}}\n</tool_call>');
  expect((await project.aerie(['check', 'run.yaml'])).code).toBe(0);
});

test('a preview shows calls, results, and what the source gave', async () => {
  const project = await toolProject({ engine: 'vllm' });
  const shown = await project.aerie(['preview', 'run.yaml']);
  expect(shown.code, shown.stderr).toBe(0);
  expect(shown.stdout).toMatch(
    /user {6}Weather in Wien\?\ncall {6}look\(\{"city": "Wien"\}\)\n +\(.* tool-calls\)\ntool {6}rain\nanswer {4}\w/,
  );
  project.change({ partitions: [{ name: 'B1', from: 'prompts.jsonl', turns: 'last' }] });
  const last = await project.aerie(['preview', 'run.yaml']);
  expect(last.stdout).toMatch(
    /user {6}Wien and Graz\?\ngiven {5}\ncall {6}look\(\{\}\)\ncall {6}look\(\{\}\)\ntool {6}sun\ntool {6}fog\nanswer/,
  );
});
