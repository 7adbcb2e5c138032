/** What becomes of the answers, and what is known of them. The cells of `peers` stand in the order of generators.mjs. */
import { aerie, npm, test } from './proofs.mjs';

const journey = (name) => `test/journeys/${name}.test.ts`;

export const DATA = [
  {
    feature: 'truncation policy',
    peers: 'none | counted (L719) | flag and stop (L118) | none | none | none | none',
    verdict: 'yes',
    what: 'keep (flagged), drop or continue by its ids, per partition; an answer that fills its cap is cut whatever the server calls it',
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
    feature: 'empty answers rejected',
    peers:
      'with `save` and `disable` only (L287, L307) | yes (L493) | no: "" is stored (L111) | no (L321) | no | no | partly: null ends the conversation, "" is stored (L123)',
    verdict: 'partly',
    what: 'one without tokens is no answer and is asked again; one of blanks is a record, flagged, found by `check`, and left out or asked anew on request',
    proofs: [
      test(
        'test/contracts/generation-faults.test.ts',
        'wrong counts, bad ids, garbage, an empty or a cut answer are asked again and never kept',
      ),
      test('src/generation/conversation.test.ts', 'what a reader must know of a record stands in its flags'),
      aerie('export RUN --for specforge --without empty-content'),
      aerie('run RUN --redo empty-content'),
    ],
  },
  {
    feature: 'output order stable',
    peers: 'no | no | no | **yes**, in and over shards (L364) | no | no | no',
    verdict: 'partly',
    what: 'an export is in the order of the commits: the same records give the same bytes, another run may give another order',
    proofs: [test('src/delivery/export-run.test.ts', 'gives the same bytes for the same records, and replaces its own export')],
  },
  {
    feature: 'token budget per data set',
    peers: 'no (rows: L155) | no (rows) | no | no | no (rows) | no (rows) | no',
    verdict: 'yes',
    what: 'counted in the engine’s own tokens, with what is expected in flight',
    proofs: [
      test(journey('resume'), 'a budget stops admission, the report shows spent and budget, and a higher one goes on'),
      test(
        'src/generation/budget.test.ts',
        'whatever arrives and is answered: never admitted past the rule, overshoot at most what was in flight, never stuck',
      ),
    ],
  },
  {
    feature: 'several partitions in one run',
    peers: 'no | no | no | no | no | no | no',
    verdict: 'yes',
    what: 'each with its source, budget, limit, sampling, turns and truncation',
    proofs: [
      test(journey('resume'), 'another port, a new partition, a higher limit and other in-flight are taken over'),
      test('src/generation/prompt-settings.test.ts', 'a partition asks with its own settings laid over those of the run'),
    ],
  },
  {
    feature: 'statistics in real tokens',
    peers: 'no, words (L190) | yes (usage, L715) | no | no | no, words | yes (usage, L185) | no',
    verdict: 'yes',
    what: 'spent, generated and cut, per partition',
    proofs: [
      test('test/contracts/generation-faults.test.ts', 'a budget stops admission, and what was spent is what the engine gave'),
      aerie('status RUN --json'),
    ],
  },
  {
    feature: 'progress with time left per data set',
    peers:
      'bar, moved when asked (L514) | bar with ok, err, trunc, rps, tps (L739) | bar | log lines | bar, moved when asked (L348) | bar | bar',
    verdict: 'partly',
    what: 'a line per partition (done, tokens, cut, set aside), rate and time left for the run as a range',
    proofs: [
      test('src/cli/render/render.test.ts', 'a partition says how far it is, of what, and what went wrong'),
      test('src/app/progress.test.ts', 'the time left is the open prompts at the mean of the done ones, as a range'),
    ],
  },
  {
    feature: 'sampling recorded per row',
    peers: 'no | yes (L531) | no | in the manifest (L92) | no | no | no',
    verdict: 'yes',
    what: 'with model, revision, engine, weights, KV type, template hash and launch',
    proofs: [
      test(
        journey('run-embedded'),
        'records agree with themselves and with what was asked, and the same run gives the same ones',
      ),
      test('src/shard/render-record.test.ts', 'the keys of a record are these, in this order'),
    ],
  },
  {
    feature: 'seed per request',
    peers: 'no | no (one for all, by `--sampling-params`) | no | no | no | no | no',
    verdict: 'yes',
    what: 'from the run’s seed, the prompt’s id and the turn; in the record',
    proofs: [
      test('src/base/ids.test.ts', 'a seed depends on run, prompt and turn, and fits a signed 32-bit number'),
      test(
        journey('run-embedded'),
        'records agree with themselves and with what was asked, and the same run gives the same ones',
      ),
    ],
  },
  {
    feature: 'temperature mixture',
    peers:
      'no (a random effort, not recorded: L243) | not at this commit; pull request 1037 | by file (worker.sh) | no | no (a random effort) | no (a random effort) | one a run, at random (L216)',
    verdict: 'yes',
    what: 'drawn from the prompt’s id, the same in every run, in the record',
    proofs: [
      test(
        'src/generation/prompt-settings.test.ts',
        'a mixture gives each share of the prompts its temperature, and the rest the one of the run',
      ),
      test(
        'src/generation/prompt-settings.test.ts',
        'the temperature of a prompt is the same in every run with this seed and mixture',
      ),
    ],
  },
  {
    feature: 'prompt length checked before sending',
    peers: 'no | no | partly: query.py, characters ÷ 3 (L159) | no | no | no | no; its rollout script, in tokens',
    verdict: 'partly',
    what: 'in tokens, by vLLM and the embedded engine, where its bytes say that it may be too long; SGLang and OpenAI refuse it themselves. Either way set aside by name, counted, and asked again by `--retry-failed`',
    proofs: [
      test(journey('context-length'), 'of every engine, in its own words and at its own bounds'),
      test(journey('context-length'), 'the embedded engine itself: its own words, its own count'),
      aerie('status RUN'),
    ],
  },
  {
    feature: 'contamination and quality filters',
    peers:
      'no | by language only (L854) | no | no | no | no | no; its rollout script: refusals, short answers, five names of benchmarks',
    verdict: 'yes',
    what: 'loops, refusals, near duplicates, prompts of a benchmark list, leaked tokens and more: counted, left out by `--without`, asked anew by `--redo`',
    proofs: [
      test(journey('findings'), 'a loop and a refusal are found, and the export that check names leaves them out'),
      test(
        journey('findings'),
        'prompts of a benchmark, and prompts that fill the length of a trainer, are found where check is told of them',
      ),
      test(journey('findings'), 'the new attempt that check names takes the finding away'),
    ],
  },
  {
    feature: 'validator',
    peers: 'yes, its own format | when loading | no | when loading | when loading | no | no',
    verdict: 'yes',
    what: 'every record by `check`, every export by the trainers’ own code and by a reader without Aerie’s',
    proofs: [
      test('src/delivery/check-run.test.ts', 'has a wrong dataset for every code'),
      npm('verify:trainers'),
      aerie('check RUN --benchmarks FILE'),
    ],
  },
  {
    feature: 'vocabulary map without GPU',
    peers:
      'yes (specforge/data/preprocessing.py L587) | yes (train/vocab_mapping.py L64) | yes (calibrate_draft_vocab.py) | yes (datasets/llm/eagle3.py L246) | not needed: the whole vocabulary | yes (torchspec/data/preprocessing.py L409) | yes (data_utils.py L94)',
    verdict: 'yes',
    what: 'with coverage and a hash of the counts',
    proofs: [
      test(
        'src/delivery/export-switches.test.ts',
        'holds the most frequent tokens, ties to the smaller id, whatever the order they came in',
      ),
      test('src/delivery/export-switches.test.ts', 'have the header that the format asks for, and little-endian values after it'),
      aerie('export RUN --for speculators --draft-vocab 32000'),
    ],
  },
];
