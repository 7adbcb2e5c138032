/**
 * The story from its first start to the owner's veto, over the command line: a server that dies of its own arithmetic in mid-run, the
 * launch that the arithmetic gives, a person's edit, and a proposal that a rule forbids.
 */
import { expect } from 'vitest';
import { proves } from '../../proves.ts';
import { enginesOf, eventsOf, expectAnsweredOnce, neverTwoEngines } from '../../support/launch-history.ts';
import { describeAt, type Where } from '../../support/launch-place.ts';
import { launchProject, STORY_FLAGS, STORY_MACHINE } from '../../support/launch-project.ts';
import { promptRow } from '../../support/lookalike-project.ts';

/** One token a byte: more than a prefill chunk of 8,192, as a document in a prompt is. */
const LONG = 'All of this belongs to the question. '.repeat(260);
const longRow = (at: number) => ({ prompt: `${LONG} Question ${at}: what of it is true?` });
/** What the allocator keeps beside capture, so that 0.93 leaves the story's 0.82 GiB. */
const MACHINE = { ...STORY_MACHINE, fragmentsGiB: { '0.93': -0.05 } };
const AT_93 = { ...STORY_FLAGS, 'mem-fraction-static': 0.93 };
const OWNER = {
  forbid: { 'kv-cache': 'below-16-bit' },
  because: 'FP8 KV on an INT4 MLA model degrades it noticeably',
  by: 'model owner',
};
const [SHORT_ONES, LONG_ONES, LATER] = [16, 8, 6];
const B1 = [
  ...Array.from({ length: SHORT_ONES }, (_, at) => promptRow(at)),
  ...Array.from({ length: LONG_ONES }, (_, at) => longRow(at)),
];
const B2 = Array.from({ length: LATER }, (_, at) => longRow(100 + at));

export function describeStory(where: Where): void {
  describeAt(where, 'the story', () => {
    proves(
      'record:exactly-once',
      'the story: 0.93 dies at work, the arithmetic brings it back, 0.88 is verified, FP8 is refused',
      async () => {
        const project = await launchProject({ where, flags: AT_93, scenario: { machine: MACHINE } });
        project.writeRows('prompts.jsonl', B1);
        project.writeRows('more.jsonl', B2);

        const first = await neverTwoEngines(project, project.aerie('run', 'run.yaml'));
        expect(first.code, first.stderr).toBe(0);
        expectAnsweredOnce(project, { B1: B1.length });
        // It was at work when it died: what was answered before stays, what was in flight is asked again.
        const lives = [...new Set(project.journal().map(({ life }) => life))];
        expect(lives).toHaveLength(2);
        const ofFirst = project.journal().filter(({ life }) => life === lives[0]);
        const answered = ofFirst.filter(({ event }) => event === 'answered').length;
        expect(answered).toBeGreaterThan(0);
        // Several were in flight; over ssh the first long one may have killed it before the next had arrived.
        const fewest = where === 'here' ? 2 : 1;
        expect(ofFirst.filter(({ event }) => event === 'received').length).toBeGreaterThanOrEqual(answered + fewest);

        expect(eventsOf(project, 'verdict.given').map(({ facts }) => facts)).toMatchObject([
          { launch: 1, state: 'crashed', phase: 'serving', cause: 'runtime-oom-activation' },
        ]);
        const [verified1, verified2] = eventsOf(project, 'launch.verified').map(({ facts }) => facts);
        expect(verified1).toMatchObject({ launch: 1, freeAfterGraphsGiB: 0.82, maxRunningRequests: 2048, kvCacheDtype: 'bf16' });
        expect(verified2).toMatchObject({ launch: 2, maxRunningRequests: 256, kvCacheDtype: 'bf16' });
        // The pool is kept; only what the table of requests and the graphs took is given back.
        expect(verified2?.['poolTokens']).toBe(verified1?.['poolTokens']);
        expect(verified2?.['freeAfterGraphsGiB']).toBeCloseTo(3.67, 1);
        const [change] = eventsOf(project, 'launch.changed').map(({ facts }) => facts);
        expect(change).toMatchObject({
          launch: 2,
          changes: 'max-running-requests default → 256',
          poolTokens: verified1?.['poolTokens'],
        });
        expect(change?.['because']).toContain('3.67 GiB are left after graph capture (0.82 before)');
        expect(first.stderr).toContain('launch 2 next, with max-running-requests default → 256');
        const told = await project.aerie('status', 'run.yaml');
        expect(told.code).toBe(0);
        expect(told.stdout).toMatch(/launch 1 is crashed in serving: .*\(runtime-oom-activation, high\)/);
        expect(told.stdout).toContain('launch 2 next, with max-running-requests default → 256');
        expect(told.stdout).toContain(`lives      s: launch 2${project.place.on}, pid ${project.book().current?.identity?.pid},`);

        // A person's edit: another fraction, and more prompts.
        const partitions = [
          { name: 'B1', from: 'prompts.jsonl' },
          { name: 'B2', from: 'more.jsonl' },
        ];
        project.change({ flags: STORY_FLAGS, run: { partitions } });
        const second = await neverTwoEngines(project, project.aerie('run', 'run.yaml'));
        expect(second.code, second.stderr).toBe(0);
        expect(second.stderr).toContain('s: launch 2 is ended, because the run file has other flags now');
        expectAnsweredOnce(project, { B1: B1.length, B2: B2.length });
        expect(eventsOf(project, 'launch.verified').at(-1)?.facts).toMatchObject({
          launch: 3,
          poolTokens: 159_277,
          kvCacheDtype: 'bf16',
        });
        const verify = await project.aerie('server', 'verify', 'run.yaml', '--json');
        expect(verify.code).toBe(0);
        expect(verify.json().data).toMatchObject({
          isWell: true,
          servers: [{ launch: 3, verified: { poolTokens: 159_277, kvType: { type: 'bf16' } } }],
        });

        // FP8 is proposed, and the owner has said no.
        const [before, running] = [project.book(), enginesOf(project)];
        project.change({ flags: { ...STORY_FLAGS, 'kv-cache-dtype': 'fp8_e4m3' }, run: { partitions, policy: [OWNER] } });
        const refused = await project.aerie('run', 'run.yaml', '--json');
        expect(refused.code).toBe(2);
        expect(refused.json().error).toMatchObject({
          code: 'policy.forbids',
          because: 'FP8 KV on an INT4 MLA model degrades it noticeably (decided by model owner)',
        });
        expect(project.book()).toEqual(before);
        expect(enginesOf(project)).toEqual(running);
        expect(running).toEqual([before.current?.identity?.pid]);
        expectAnsweredOnce(project, { B1: B1.length, B2: B2.length });
      },
    );
  });
}
