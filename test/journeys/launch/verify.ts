/** What a server really is: read from its whole log, however much stands behind the line that says it, and told apart from the launch before. */
import { appendFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { describeAt, type Where } from '../../support/launch-place.ts';
import { launchProject, STORY_FLAGS } from '../../support/launch-project.ts';
import { eventsOf, serverLog } from '../../support/launch-witness.ts';
import { expectEachOnce } from '../../support/lookalike-project.ts';

/** An hour at work, as SGLang writes it, with words that frighten and mean nothing. */
const HOUR = [
  '[2026-11-30 21:00:00] INFO:     10.0.0.7:51234 - "POST /v1/chat/completions HTTP/1.1" 200 OK',
  '[2026-11-30 21:00:01 TP0] Prefill batch, #new-seq: 1, #new-token: 212, #cached-token: 0, token usage: 0.41, #running-req: 34, #queue-req: 0, ',
  '[2026-11-30 21:00:04 TP0] Decode batch, #running-req: 35, #token: 64981, token usage: 0.41, cuda graph: True, gen throughput (token/s): 612.30, #queue-req: 0, ',
  '[2026-11-30 21:00:05] INFO:     10.0.0.9:40112 - "GET /metrics HTTP/1.1" 200 OK',
  '/usr/lib/python3/dist-packages/torch/library.py:287: UserWarning: this overload may raise an error in a later version, and the failed call is tried again',
  '[2026-11-30 21:00:06 TP3] Ignore import error when loading sglang.srt.models.midashenglm: No module named x',
];

export function describeVerify(where: Where): void {
  describeAt(where, 'what a server really is', () => {
    test('the empty body of a healthy server is well, and the capacity line is found thousands of lines above the end', async () => {
      const project = await launchProject({ where, prompts: 4 });
      expect((await project.aerie('server', 'start', 'run.yaml')).code).toBe(0);
      const health = await fetch(`http://127.0.0.1:${project.port}/health`);
      expect({ status: health.status, body: await health.text() }).toEqual({ status: 200, body: '' });

      appendFileSync(project.place.logPath(), `${Array.from({ length: 5000 }, () => HOUR.join('\n')).join('\n')}\n`);
      const capacity = serverLog(project).lastIndexOf('max_total_num_tokens=159277');
      expect(capacity).toBeGreaterThan(0);
      expect(serverLog(project).slice(capacity).split('\n').length).toBeGreaterThan(30_000);
      const looked = await project.aerie('server', 'verify', 'run.yaml', '--json');
      expect(looked.json().data.servers[0]).toMatchObject({
        verdict: { cause: 'none' },
        verified: { poolTokens: 159_277, freeAfterGraphsGiB: 5.47, kvType: { type: 'bf16', how: 'log-line' } },
        isWell: true,
      });
      expect(looked.code).toBe(0);

      const run = await project.aerie('run', 'run.yaml');
      expect(run.stderr).toMatch(/launch 1 still runs/);
      expect(run.stderr).toMatch(/launch 1 verified: holds 159,277 tokens/);
      expect(run.code).toBe(0);
      expectEachOnce(project, 4);
      expect(eventsOf(project, 'verdict.given')).toEqual([]);
    });

    if (where === 'ssh') return; // What follows compares two launches by the book.

    test('three levers that changed at once are told apart as far as arithmetic goes, with the one launch that would separate the rest', async () => {
      const project = await launchProject({
        where,
        prompts: 60,
        clockRate: 30,
        scenario: { answerTokens: { kind: 'fixed', tokens: 500 } },
        run: { 'in-flight': 20, sampling: { 'max-tokens': 600, seed: 7 } },
      });
      expect((await project.aerie('run', 'run.yaml')).code).toBe(0);
      project.change({
        flags: { ...STORY_FLAGS, 'mem-fraction-static': 0.9, 'kv-cache-dtype': 'fp8_e4m3', 'max-running-requests': 64 },
        run: {
          ...{ 'in-flight': 20, sampling: { 'max-tokens': 600, seed: 7 } },
          partitions: [
            { name: 'B1', from: 'prompts.jsonl' },
            { name: 'B2', from: 'prompts.jsonl' },
          ],
        },
      });
      const second = await project.aerie('run', 'run.yaml', '--amend');
      expect(second.code).toBe(0);
      expect(second.stderr).toContain(
        'launch 1 → launch 2: 3 levers changed; the pool has 376,029 tokens instead of 159,277, 2.36x.',
      );
      expect(eventsOf(project, 'launch.compared')).toMatchObject([{ launch: 2, before: 1, levers: 3 }]);

      const verify = await project.aerie('server', 'verify', 'run.yaml');
      expect(verify.code).toBe(0);
      expect(verify.stdout).toMatch(/kv-cache-dtype bf16 → fp8_e4m3: 2\.00x of the pool/);
      expect(verify.stdout).toMatch(/mem-fraction-static 0\.88 → 0\.9: 1\.18x of the pool/);
      expect(verify.stdout).toMatch(/max-running-requests not given → 64: confounded/);
      expect(verify.stdout).toMatch(/running \([\d.]+ → [\d.]+\)/);
      expect(verify.stdout).toMatch(/To separate them: .* with max-running-requests left out, under the same load/);
      const { change } = (await project.aerie('server', 'verify', 'run.yaml', '--json')).json().data.servers[0];
      expect(change.poolFactor).toBeCloseTo(376_029 / 159_277, 6);
      expect(change.dtypeFactor).toBe(2);
      expect(change.confounded.among).toContain('max-running-requests');
      expect(change.separate.flags).toEqual({ tp: 8, 'mem-fraction-static': 0.9, 'kv-cache-dtype': 'fp8_e4m3' });
    });
  });
}
