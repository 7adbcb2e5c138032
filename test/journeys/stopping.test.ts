/** Stopping a run in every way a person or a scheduler does, and going on with the same command. */
import { existsSync } from 'node:fs';
import { expect, test } from 'vitest';
import { proves } from '../proves.ts';
import { until } from '../support/child-processes.ts';
import type { CliResult, StartedCli } from '../support/cli.ts';
import { expectEachOnce, type LookalikeProject, lookalikeProject } from '../support/lookalike-project.ts';
import { promptStates, query } from '../support/run-folder.ts';

/** The promise; with nothing that hangs it takes a second. */
const STOP_WITHIN_MS = 10_000;
/** The first four requests are answered, all later ones never. */
const HANGING = { faults: [{ when: { fromRequest: 5 }, do: 'hang' }] };

async function startAndFill(project: LookalikeProject, inFlight = 4): Promise<StartedCli> {
  const run = project.start(['run', 'run.yaml']);
  await run.line(/ready at/);
  await until(async () => (await project.inFlight()) === inFlight);
  return run;
}

async function stopped(run: StartedCli, ...signals: NodeJS.Signals[]): Promise<CliResult & { readonly stopMs: number }> {
  const from = performance.now();
  for (const signal of signals) {
    run.kill(signal);
    if (signal === 'SIGINT' && signals.length > 1) await run.line(/Ctrl-C again/);
  }
  const result = await run.ended;
  return { ...result, stopMs: performance.now() - from };
}

async function resumesAndFinishes(project: LookalikeProject, prompts: number): Promise<void> {
  const resumed = await project.aerie(['run', 'run.yaml']);
  expect(resumed.code, resumed.stderr).toBe(0);
  expectEachOnce(project, prompts);
}

function expectAccounted(project: LookalikeProject, prompts: number): void {
  const { leased = 0, waiting = 0, done = 0 } = promptStates(project.runFolder);
  expect(done + waiting + leased).toBe(prompts);
  expect(done).toBeGreaterThan(0);
  expect(done).toBeLessThan(prompts);
}

proves('stop:drain-commits', 'one Ctrl-C finishes and commits what is in flight, says how to resume, and exits 130', async () => {
  const project = await lookalikeProject({ prompts: 16, scenario: { latency: { kind: 'fixed', ms: 500 } } });
  const run = await startAndFill(project);
  const result = await stopped(run, 'SIGINT');

  expect(result.code, result.stderr).toBe(130);
  expect(result.stderr).toMatch(/Ctrl-C: finishing what is in flight, then committing/);
  expect(result.stderr).toMatch(/draining: 4 requests in flight/);
  expect(result.stderr).toMatch(/Resume with: aerie run run\.yaml/);
  expect(result.stdout).toBe('');
  expectAccounted(project, 16);
  const done = promptStates(project.runFolder)['done'];
  expect(result.stderr).toContain(`${done} of 16 prompts are done`);
  // Nothing was asked in vain: each request that the engine received is a record.
  expect(project.journal().filter(({ event }) => event === 'received').length).toBe(done);
  await resumesAndFinishes(project, 16);
  expect(project.journal().filter(({ event }) => event === 'received').length).toBe(16);
});

proves('stop:abort-commits-fast', 'a second Ctrl-C gives up what hangs, within ten seconds, and says how much', async () => {
  const project = await lookalikeProject({ prompts: 12, scenario: HANGING });
  const run = await startAndFill(project);
  const result = await stopped(run, 'SIGINT', 'SIGINT');

  expect(result.code, result.stderr).toBe(130);
  expect(result.stopMs).toBeLessThan(STOP_WITHIN_MS);
  expect(result.stderr).toMatch(/given up: 4 requests in flight, about [\d,]+ tokens/);
  expect(result.stderr).toMatch(/4 of 12 prompts are done/);
  expect(result.stderr).toMatch(/Resume with: aerie run run\.yaml/);
  expectAccounted(project, 12);
  await project.clearFaults();
  await resumesAndFinishes(project, 12);
});

proves('stop:abort-commits-fast', 'SIGTERM commits what was answered and exits 143 within ten seconds', async () => {
  const project = await lookalikeProject({ prompts: 12, scenario: HANGING });
  const run = await startAndFill(project);
  const result = await stopped(run, 'SIGTERM');

  expect(result.code, result.stderr).toBe(143);
  expect(result.stopMs).toBeLessThan(STOP_WITHIN_MS);
  expect(result.stderr).toMatch(/Stopped by SIGTERM/);
  expect(result.stderr).toMatch(/given up: 4 requests in flight/);
  expectAccounted(project, 12);
  await project.clearFaults();
  await resumesAndFinishes(project, 12);
});

test('a stop under --json is one document on stdout, with the numbers as facts', async () => {
  const project = await lookalikeProject({ prompts: 12, scenario: HANGING });
  const run = project.start(['run', 'run.yaml', '--json']);
  // Those that hang, not the first four on their way to an answer.
  const answered = () => project.journal().filter(({ event }) => event === 'answered').length;
  await until(async () => answered() === 4 && (await project.inFlight()) === 4);
  run.kill('SIGTERM');
  const result = await run.ended;

  expect(result.code).toBe(143);
  expect(result.stderr).toBe('');
  const { error } = result.json();
  expect(error?.code).toBe('run.terminated');
  expect(error?.facts).toMatchObject({ done: 4, enrolled: 12, givenUpRequests: 4 });
});

proves('stop:hang-up-is-safe', 'a hang-up does not stop a run that is in no terminal', async () => {
  const project = await lookalikeProject({ prompts: 12, scenario: { latency: { kind: 'fixed', ms: 300 } } });
  const run = await startAndFill(project);
  run.kill('SIGHUP');
  run.child.stderr?.destroy();
  run.child.stdout?.destroy();
  const result = await run.ended;

  expect(result.code).toBe(0);
  expectEachOnce(project, 12);
});

proves(
  'stop:drain-commits',
  'Ctrl-C while the server is not there yet ends at once; later the same command finishes',
  async () => {
    const project = await lookalikeProject({ prompts: 5, started: false });
    const run = project.start(['run', 'run.yaml']);
    await run.line(/not ready/);
    const result = await stopped(run, 'SIGINT');

    expect(result.code, result.stderr).toBe(130);
    expect(result.stopMs).toBeLessThan(STOP_WITHIN_MS);
    expect(result.stderr).toMatch(/0 of 5 prompts are done.*Resume with: aerie run run\.yaml/);
    await project.startLater();
    await resumesAndFinishes(project, 5);
  },
);

proves(
  'stop:drain-commits',
  'Ctrl-C while a large source is read stops between two batches, and the rest is read later',
  async () => {
    const project = await lookalikeProject({ prompts: 20 });
    const rows = project.read('prompts.jsonl').split('\n').slice(0, 20);
    const twice = `${JSON.stringify({ prompt: `Question 0: ${'long '.repeat(200)}` })}\n`.repeat(80_000);
    project.write('prompts.jsonl', `${rows.slice(0, 10).join('\n')}\n${twice}${rows.slice(10).join('\n')}\n`);
    const run = project.start(['run', 'run.yaml']);
    await run.line(/run r in/);
    const enrolment = () => query(project.runFolder, 'SELECT enrolment, source_rows, enrolled FROM partitions')[0];
    await until(() => Number(enrolment()?.['source_rows'] ?? 0) > 1_000);
    const result = await stopped(run, 'SIGINT');

    expect(result.code, result.stderr).toBe(130);
    expect(result.stopMs).toBeLessThan(STOP_WITHIN_MS);
    expect(enrolment()).toMatchObject({ enrolment: 'open', enrolled: 11 });
    await resumesAndFinishes(project, 21);
    expect(query(project.runFolder, 'SELECT duplicates FROM partitions')[0]).toEqual({ duplicates: 79_999 });
  },
);

test('a preview that is stopped keeps nothing and does not speak of resuming', async () => {
  const project = await lookalikeProject({ prompts: 3, scenario: { faults: [{ when: {}, do: 'hang' }] } });
  const preview = project.start(['preview', 'run.yaml']);
  await until(async () => (await project.inFlight()) === 3);
  const result = await stopped(preview, 'SIGINT', 'SIGINT');

  expect(result.code, result.stderr).toBe(130);
  expect(result.stderr).toMatch(/The preview was stopped before it was whole\.\ntry +Nothing was kept/);
  expect(result.stderr).not.toMatch(/resum/i);
  expect(existsSync(project.path('runs'))).toBe(false);
});
