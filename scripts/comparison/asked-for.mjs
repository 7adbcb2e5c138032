/**
 * What no generator had at the commits compared, and their users ask for or would profit from: what Aerie does of it now,
 * and what not yet. `asked` names where it was asked (issue numbers of that repository), where it was.
 */
import { aerie, npm, test } from './proofs.mjs';

const journey = (name) => `test/journeys/${name}.test.ts`;

export const ASKED_FOR = [
  {
    feature:
      'a journal that is exact after a crash: a record a turn, fsync in groups, torn tails mended, exports whole or absent',
    asked: 'SpecForge 458; speculators 584, 716, 739; Model-Optimizer 2080',
    verdict: 'yes',
    proofs: [
      npm('torture'),
      test(journey('durability'), 'every record is synced before the ledger has it, and the ledger before it is told'),
      test(journey('crash-random'), 'turns that were stored before a kill are used afterwards and never asked again'),
      test('src/delivery/export-run.test.ts', 'leaves the old export whole when the records end in an error or the signal comes'),
    ],
  },
  {
    feature: 'token budgets per data set, exact, with what is in flight',
    asked: '',
    verdict: 'yes',
    notYet: 'ratios between partitions (give each its budget)',
    proofs: [
      test(
        'src/generation/budget.test.ts',
        'whatever arrives and is answered: never admitted past the rule, overshoot at most what was in flight, never stuck',
      ),
      test(
        'src/generation/budget.test.ts',
        'an unanswered turn is expected to cost its cap until thirty answers are known, then the running mean',
      ),
      test(journey('resume'), 'a budget stops admission, the report shows spent and budget, and a higher one goes on'),
    ],
  },
  {
    feature: 'ids from SGLang too, prompt ids included, text only as a fallback that says so',
    asked: 'SGLang 18378, 30917',
    verdict: 'yes',
    notYet: 'a live SGLang or vLLM; ids of SGLang before 0.5.4',
    proofs: [
      test(
        'src/engine/chat-completion.test.ts',
        'SGLang’s ids stand in the choice, or beside log-probabilities in its meta_info',
      ),
      test(journey('attached'), '%s %s with ids %s: exact is %s'),
      test(journey('attached'), 'exact and text-only endpoints in one run: each record says what it is'),
    ],
  },
  {
    feature: 'a truncation policy per data set, counted, the cap checked where the server says stop',
    asked: 'speculators 835 (35 % of rows cut)',
    verdict: 'yes',
    proofs: [
      test(journey('continued'), '%s is asked on at %s with the ids so far, and each piece has a seed of its own'),
      test(journey('superseding'), 'dropped answers are no records, are counted, and are asked again with another cap'),
      test(
        'src/engine/chat-completion.test.ts',
        'an answer that fills its cap without a stop id is cut, whatever the server calls it',
      ),
    ],
  },
  {
    feature: 'a work-conserving scheduler: least loaded, circuit breaker, drain, re-admission, adaptive concurrency',
    asked: 'speculators 510, 1037',
    verdict: 'partly',
    notYet: 'concurrency that follows the measured speed; load in tokens instead of requests; long prompts first',
    proofs: [
      test(
        'src/fleet/fleet.test.ts',
        'five different prompts without an answer make a server sick, for half a minute or until it answers',
      ),
      test(journey('attached'), 'several endpoints: the slow one gets less, one that dies and comes back costs nothing'),
      test(journey('stopping'), 'one Ctrl-C finishes and commits what is in flight, says how to resume, and exits 130'),
      npm('bench:driver'),
    ],
  },
  {
    feature: 'error classes and a list of poison prompts; one bad prompt never stops a run',
    asked: 'Automodel and query.py end the run',
    verdict: 'yes',
    proofs: [
      test(
        'test/contracts/generation-faults.test.ts',
        'a prompt that kills the server each time is set aside in the end, and nobody else',
      ),
      test(
        'src/generation/decide-retry.test.ts',
        'a prompt that always fails while others are answered is set aside after a bounded number of attempts',
      ),
      test(
        'src/generation/decide-retry.test.ts',
        'a server that answers nobody never costs a prompt its place, however long and however it fails',
      ),
    ],
  },
  {
    feature: 'several partitions in one run, each with its input, budget, sampling, truncation and export; time left for each',
    asked: '',
    verdict: 'partly',
    notYet: 'time left is said for the run, not for each partition; no dashboard',
    proofs: [
      test('src/generation/prompt-settings.test.ts', 'a partition asks with its own settings laid over those of the run'),
      test(journey('export-cli'), '--held-out holds out the same prompts for two trainers, and --partition exports one'),
      test('src/cli/render/render.test.ts', 'a partition says how far it is, of what, and what went wrong'),
    ],
  },
  {
    feature: 'provenance: seed, sampling, finish, usage, server, model, template; settings pinned, operational ones free',
    asked: 'speculators 716; Automodel refuses another port',
    verdict: 'yes',
    notYet: 'template arguments (thinking, effort) stand in run.resolved.json, not in each record',
    proofs: [
      test(
        journey('run-embedded'),
        'records agree with themselves and with what was asked, and the same run gives the same ones',
      ),
      test('src/shard/render-record.test.ts', 'the keys of a record are these, in this order'),
      test(journey('resume'), 'another port, a new partition, a higher limit and other in-flight are taken over'),
    ],
  },
  {
    feature: 'exports for several trainers, accepted by their own code; a drift report',
    asked: 'SpecForge 296, 885; speculators 346; EAGLE 51; Automodel 3738',
    verdict: 'yes',
    notYet: 'rows of DeepSpec, TorchSpec and AngelSlim are read by no check of theirs (their formats are those of `specforge`)',
    proofs: [
      npm('verify:trainers'),
      test(journey('export-cli'), 'every trainer gets all that its format can say of the run'),
      test(
        'src/delivery/findings/drift-findings.test.ts',
        'is in the answer where the model wrote other tokens than its text is split into',
      ),
      test('src/delivery/export-switches.test.ts', 'adds the token before each answer and nothing else'),
    ],
  },
  {
    feature: 'temperature and seed derived from the row’s id',
    asked: 'speculators 1037',
    verdict: 'yes',
    notYet: 'a mixture of reasoning efforts',
    proofs: [
      test(
        'src/generation/prompt-settings.test.ts',
        'the temperature of a prompt is the same in every run with this seed and mixture',
      ),
      test('src/base/ids.test.ts', 'a seed depends on run, prompt and turn, and fits a signed 32-bit number'),
    ],
  },
  {
    feature:
      'both reasoning fields, raw ids, an explicit choice whether history keeps reasoning, rows per turn where it does not',
    asked: 'vLLM 27755, 33402',
    verdict: 'partly',
    notYet: 'the choice: the history that Aerie sends has the answers’ text, never their reasoning',
    proofs: [
      test(
        'src/engine/chat-completion.test.ts',
        'reasoning is read under both of its names, content may be null, and prompt ids may stand in the choice',
      ),
      test('src/delivery/token-rows.test.ts', 'make one row per turn where a history was tokenised anew'),
    ],
  },
  {
    feature: 'parallel tool calls and missing tool results; images passed through',
    asked: 'speculators 694, 750, 771; SpecForge drops tool calls',
    verdict: 'partly',
    notYet: 'images',
    proofs: [
      test(journey('tool-calls'), 'check finds nothing wrong, and every export is what its readers take'),
      test(
        'src/shard/walk-conversation.test.ts',
        'the calls of an answer take the next results of the source, and carry their own ids',
      ),
      test('src/shard/walk-conversation.test.ts', 'a call without a result, or with another tool’s, ends the conversation'),
      test(
        'src/delivery/export-targets.test.ts',
        'automodel: tool calls, results and definitions too, in files where every row has them',
      ),
    ],
  },
  {
    feature: 'input adapters, and a report of refused rows by reason',
    asked: 'SpecForge 777; speculators 335, 353, 1147',
    verdict: 'yes',
    proofs: [
      test('src/dataset/formats.test.ts', 'every format gives the same prompts and refusals, and resumes at any row'),
      test(
        'src/dataset/row-tools.test.ts',
        'columns: names, dotted ways, entries of lists; what is named is all that is looked at',
      ),
      test(journey('run-embedded'), 'bad rows are counted, named with line and reason, and kept out; duplicates are asked once'),
      aerie('run RUN --strict'),
    ],
  },
  {
    feature: 'filters for duplicates, benchmarks, length, loops and refusals, with counts',
    asked: 'speculators 584',
    verdict: 'yes',
    proofs: [
      test('src/delivery/check-run.test.ts', 'has a wrong dataset for every code'),
      test(journey('findings'), 'a loop and a refusal are found, and the export that check names leaves them out'),
      test(journey('export-cli'), '--without leaves out just what check finds, and counts are of what is left'),
    ],
  },
  {
    feature: 'before the run: prompt length against the context, cost and time from the first answers, disk',
    asked: 'DeepSpec 42; SpecForge 426',
    verdict: 'partly',
    notYet: 'prompts are counted one by one as their turn comes, not before the run; no cost; time left only while it runs',
    proofs: [
      test('src/app/doctor/judge.test.ts', 'memory and disk space, with the size that the budgets come to'),
      test(journey('attached'), 'a preview on a text-only endpoint says so before anything is begun'),
      test(
        journey('preview'),
        'refused rows are named with the first of each reason, and prompts without an answer with what the server said',
      ),
      aerie('preview RUN'),
    ],
  },
  {
    feature: 'vocabulary map and token counts at export, on the CPU, with a hash against stale maps',
    asked: 'SpecForge 602, 765; speculators 903',
    verdict: 'yes',
    proofs: [
      test(
        'src/delivery/export-switches.test.ts',
        'are of the tokens the model wrote, beside the folder, and gone with the export they belong to',
      ),
      test('src/delivery/export-switches.test.ts', 'has another hash when a count or a size is another'),
    ],
  },
  {
    feature: 'stable order and a held-out split by a hash of the id',
    asked: '',
    verdict: 'partly',
    notYet: 'the order is that of the commits',
    proofs: [
      test('src/delivery/export-switches.test.ts', 'are the same for every trainer, and stay held out when the share grows'),
      test('src/delivery/export-run.test.ts', 'gives the same bytes for the same records, and replaces its own export'),
    ],
  },
  {
    feature: 'live metrics: tokens a second, in flight, KV pressure, truncation and error rates',
    asked: '',
    verdict: 'partly',
    notYet: 'KV pressure from the server; a metrics endpoint',
    proofs: [
      test('src/app/progress.test.ts', 'the rate is that of the last minute'),
      test('src/cli/render/render.test.ts', 'the line for pipes has the same facts, and says what is not known yet'),
      aerie('status RUN --json'),
    ],
  },
];
