/** The first second of a new user: help loads nothing heavy, every help text reads well, and a closed pipe breaks nothing. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { MAIN, makeProject } from '../support/cli.ts';
import { openDoor } from '../support/cli-door.ts';
import { LIST_MODULES, modulesIn } from '../support/list-modules.ts';

/** init writes the run file that doctor looks at. */
const COMMANDS = ['run', 'preview', 'status', 'stop', 'check', 'export', 'init', 'doctor', 'explain'];

const door = openDoor();

async function modulesOf(args: readonly string[]): Promise<string[]> {
  const result = await makeProject().aerie(args, { nodeArgs: ['--import', LIST_MODULES] });
  expect(result.code, result.stderr).toBe(0);
  return modulesIn(result.stderr);
}

test('help and version load the command table and nothing else', async () => {
  for (const args of [['--help'], ['--version'], ['run', '--help'], []]) {
    const modules = await modulesOf(args);
    expect(modules.length).toBeGreaterThan(3);
    const others = modules.filter((url) => !/\/dist\/(main\.js|cli\/|base\/)|\/node_modules\/@stricli\/core\//.test(url));
    expect(others).toEqual([]);
    expect(modules.filter((url) => /\/dist\/cli\/(commands|terminal)/.test(url))).toEqual([]);
  }
});

test('status loads neither the engine, the HTTP client nor the questions of init', async () => {
  const project = makeProject();
  project.writeRun('run.yaml', { run: 'r', model: 'm', partitions: [{ name: 'B1', from: 'x.jsonl' }] });
  const result = await project.aerie(['status', 'run.yaml'], { nodeArgs: ['--import', LIST_MODULES] });
  expect(result.stderr).toMatch(/run\.absent/);
  expect(result.stderr).toMatch(/^loads file:.*\/node_modules\/zod\//m); // the hook sees what is loaded
  expect(result.stderr.match(/node_modules\/(node-llama-cpp|hono|@clack|@huggingface\/hub|execa|log-update)\//g)).toBeNull();
});

test('every help text reads well: usage, an example that can be typed, each flag with its sentence', async () => {
  const project = door.through(makeProject());
  const top = await project.aerie(['--help']);
  expect(top.code).toBe(0);
  expect(top.stderr).toBe('');
  for (const command of COMMANDS) {
    expect(top.stdout).toMatch(new RegExp(`^ {2}${command} +\\S.*\\w$`, 'm'));
    const help = await project.aerie([command, '--help']);
    expect(help.code, help.stderr).toBe(0);
    expect(help.stdout).toMatch(new RegExp(`^USAGE\\n {2}aerie ${command} `));
    expect(help.stdout).toMatch(new RegExp(`Example: aerie ${command} \\S`));
    expect(help.stdout).toMatch(/--json\]? +Print one JSON document on stdout/);
    for (const text of [top.stdout, help.stdout]) expect(text).not.toMatch(/undefined|\[object|NaN|TODO/);
  }
  expect(top.stdout).toMatch(/Exit codes: 0 yes · 1 no · 2 usage or file · 3 environment · 4 engine/);
});

test('the example of each help text is a command line that is understood', async () => {
  const project = door.through(makeProject());
  for (const command of COMMANDS) {
    const { stdout } = await project.aerie([command, '--help']);
    const example = /Example: aerie (.*)$/m.exec(stdout)?.[1] ?? '';
    const result = await project.aerie(example.split(' '));
    expect(result.stderr).not.toMatch(/usage\.flag/);
    expect(result.code).toBe(['init', 'doctor', 'explain'].includes(command) ? 0 : 2); // 2: there is no run file yet
  }
});

for (const closed of ['stdout', 'stderr'] as const) {
  test(`a ${closed} that nobody reads any more is no error`, async () => {
    const project = makeProject();
    const args = closed === 'stdout' ? ['--help'] : ['status', 'none.yaml'];
    const child = spawn(process.execPath, [MAIN, ...args], { cwd: project.folder, stdio: ['ignore', 'pipe', 'pipe'] });
    let other = '';
    child[closed].destroy();
    (closed === 'stdout' ? child.stderr : child.stdout).setEncoding('utf8').on('data', (text: string) => (other += text));
    const [code] = await once(child, 'close');
    expect(code).toBe(closed === 'stdout' ? 0 : 2);
    expect(other).toBe('');
  });
}

test('init writes a file that run understands, and never over another one', async () => {
  const project = door.through(makeProject());
  project.writeRows('prompts.jsonl', [{ prompt: 'Hello.' }]);
  const first = await project.aerie(['init', '--from', 'prompts.jsonl', '--run', 'quick']);
  expect(first.code, first.stderr).toBe(0);
  expect(first.stdout).toMatch(/wrote .*run\.yaml\nnext +aerie preview run\.yaml +then +aerie run run\.yaml/);
  const second = await project.aerie(['init', '--json']);
  expect(second.code).toBe(2);
  expect(second.json().error).toMatchObject({ code: 'file.exists', remedy: expect.stringContaining('--force') });
  const status = await project.aerie(['status', 'run.yaml']);
  expect(status.stderr).toMatch(/Run quick has not begun/);
  for (const engine of ['vllm', 'sglang', 'openai']) {
    const attach = engine === 'openai' ? ['--attach', 'https://gpu.example/base'] : [];
    const made = await project.aerie(['init', `${engine}.yaml`, '--engine', engine, '--model', 'org/m', ...attach]);
    expect(made.code, made.stderr).toBe(0);
    expect((await project.aerie(['status', `${engine}.yaml`])).stderr).toMatch(new RegExp(`Run ${engine} has not begun`));
  }
  const elsewhere = await project.aerie(['init', 'box.yaml', '--machine', 'root@gpu-box', '--model', 'org/m']);
  expect(elsewhere.stdout).toContain('next  aerie doctor box.yaml   then   aerie run box.yaml');
  expect(readFileSync(project.path('box.yaml'), 'utf8')).toMatch(/engine: sglang\n {4}machine: "root@gpu-box"/);
  for (const [args, says] of [
    [['--machine', 'gpu-box'], /--machine gpu-box needs the model[\s\S]*aerie init --machine gpu-box --model OWNER\/NAME/],
    [['--machine', 'gpu-box', '--attach', 'ssh://gpu-box:8000', '--model', 'm'], /--attach ssh:\/\/gpu-box:30000/],
    [
      ['--attach', 'ssh://gpu-box', '--model', 'm'],
      /servers\[0\]\.attach {2}must name the machine and the port[\s\S]*Nothing was written/,
    ],
  ] as const) {
    const refused = await project.aerie(['init', 'x.yaml', ...args]);
    expect(refused.stderr).toMatch(says);
    expect(refused.code).toBe(2);
  }
  const nowhere = await project.aerie(['init', 'x.yaml', '--engine', 'openai']);
  expect([nowhere.code, nowhere.stderr]).toEqual([2, expect.stringContaining('--attach https://')]);
});
