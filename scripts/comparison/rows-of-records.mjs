/** What a record holds, and what is read to make one. The cells of `peers` stand in the order of generators.mjs. */
import { npm, test } from './proofs.mjs';

const journey = (name) => `test/journeys/${name}.test.ts`;

export const RECORDS = [
  {
    feature: 'exact token ids kept',
    peers:
      'no (L286) | **yes** (L587), vLLM only | no (L111) | no (L321) | no (L136) | no (L186); only its trainer’s `train_with_decode` | no (L123)',
    verdict: 'yes',
    what: 'prompt and answer ids of every turn come from the engine (embedded, vLLM ≥ 0.10.2, SGLang ≥ 0.5.13) and are counted against its usage; an endpoint that gives only text makes records that say so',
    proofs: [
      test(
        journey('run-embedded'),
        'records agree with themselves and with what was asked, and the same run gives the same ones',
      ),
      test(
        'test/contracts/dialect.test.ts',
        '%s on the %s: two turns, ids that are counted, that continue and that decode to the text',
      ),
      test(journey('attached'), '%s %s with ids %s: exact is %s'),
    ],
  },
  {
    feature: 'log-probabilities kept',
    peers: 'no | no | no | no | no | no | no',
    verdict: 'no',
    what: 'asked for only where an engine gives ids beside them (SGLang 0.5.13 to 0.5.17), and then dropped',
    proofs: [],
  },
  {
    feature: 'loss mask from the generation boundary',
    peers: 'no (pattern over text) | **yes** (L443) | no | no | no | no | no',
    verdict: 'yes',
    what: 'ones on the answer’s ids and nowhere else, whatever the template looks like',
    proofs: [
      test('src/delivery/token-rows.test.ts', 'supervise exactly the output ids, and rebuild each prompt before them'),
      npm('verify:trainers'),
    ],
  },
  {
    feature: 'every assistant turn generated anew',
    peers: 'yes (L270) | yes (L570) | yes (L84) | **no**, the last only (L208) | yes (L116) | yes (L170) | yes (L151)',
    verdict: 'yes',
    what: 'in order, the model’s own answers fed back; `turns: last` answers only the last',
    proofs: [
      test(
        'src/shard/walk-conversation.test.ts',
        'each user message is asked with everything before it, and with the model’s own answers',
      ),
      test(journey('turns-last'), 'only the last turn is asked, with the source’s own answers before it, and the mode is held'),
    ],
  },
  {
    feature: 'system prompts kept',
    peers:
      'yes (L271) | yes (L571) | **no**, the row is lost (L84, L95); `--system_prompt` adds one to all | yes (L229) | yes (L118) | yes (L171) | partly: kept in UltraChat, ends the run in ShareGPT (data_utils.py L79)',
    verdict: 'yes',
    what: '',
    proofs: [
      test('src/dataset/read-row.test.ts', 'a leading system message is kept, from the list or from its own column'),
      test(
        journey('run-embedded'),
        'records agree with themselves and with what was asked, and the same run gives the same ones',
      ),
    ],
  },
  {
    feature: 'tool calls',
    peers:
      'no, the row is skipped | partly (L577–627): one call a turn | no | partly: messages pass, no definitions, no loop (L308–321) | no | no | no',
    verdict: 'partly',
    what: 'definitions passed, calls recorded, several at once answered with the source’s next results; where it has none the conversation ends, flagged. Not tried on a live engine’s tool parser',
    proofs: [
      test(journey('tool-calls'), 'check finds nothing wrong, and every export is what its readers take'),
      test(
        'src/shard/walk-conversation.test.ts',
        'the calls of an answer take the next results of the source, and carry their own ids',
      ),
      test('src/shard/walk-conversation.test.ts', 'a call without a result, or with another tool’s, ends the conversation'),
      test('src/dataset/row-tools.test.ts', 'turns: all drops the answers and keeps the results with the name of their tool'),
      test('src/engine/chat-completion.test.ts', 'a reply whose counts, ids and finish agree is an answer'),
    ],
  },
  {
    feature: 'reasoning kept',
    peers:
      'yes (`save`, L300) | in the ids; not in the history (L505) | partly: query.py, in the last turn (L196) | yes (L322) | yes, as `thinking` (L139) | yes, as `thinking` (L187) | no',
    verdict: 'yes',
    what: 'in the ids and as text; what the template drops from the history makes a row of its own per turn',
    proofs: [
      test('src/delivery/conversation-rows.test.ts', 'carry reasoning on every answer of a file that has any'),
      test('src/delivery/token-rows.test.ts', 'make one row per turn where a history was tokenised anew'),
    ],
  },
  {
    feature: 'reads both `reasoning` and `reasoning_content`',
    peers: 'no (L302) | not needed (ids) | no | no (L323) | no | **yes** (L188) | no',
    verdict: 'yes',
    what: '',
    proofs: [
      test(
        'src/engine/chat-completion.test.ts',
        'reasoning is read under both of its names, content may be null, and prompt ids may stand in the choice',
      ),
    ],
  },
  {
    feature: 'images',
    peers: 'no | no | partly (server_generate_vlm_sglang.py) | partly (regenerate_vlm.py) | no | no | no',
    verdict: 'no',
    what: 'a row with one is refused by name (`content-not-text`), counted and never asked without it',
    proofs: [test('src/dataset/row-tools.test.ts', 'instruction and input, and parts that are text')],
  },
  {
    feature: 'local file input',
    peers:
      'yes, JSONL | **no**, presets only (L769) | yes, JSON and JSONL | yes, JSON, JSONL, Parquet | yes, JSONL | yes, JSONL | partly: a folder for `load_dataset` (L229)',
    verdict: 'yes',
    what: 'JSONL, JSON, CSV (each also gzip), Parquet, patterns and lists of files, `hf://datasets/…`, mapped columns',
    proofs: [
      test('src/dataset/formats.test.ts', 'every format gives the same prompts and refusals, and resumes at any row'),
      test(
        'src/dataset/source-files.test.ts',
        'a pattern and a list are read in order, rejections name file and line, and every row is a place to resume',
      ),
      test(
        'test/contracts/hub-source.test.ts',
        'a pattern over pages of a listing is read in order, small files and redirected ones; the commit is in the pin',
      ),
    ],
  },
  {
    feature: 'ShareGPT from/value input',
    peers: 'via prepare_data.py | presets (L180) | yes (L86) | no | no | no | yes (data_utils.py L79)',
    verdict: 'yes',
    what: 'tools in its spelling too',
    proofs: [
      test('src/dataset/read-row.test.ts', 'every shape gives the same messages'),
      test(
        'src/dataset/row-tools.test.ts',
        'calls and results in the spelling of ShareGPT, several at once, with and without ids',
      ),
    ],
  },
  {
    feature: 'the same prompt twice in a run',
    peers:
      'asked twice | asked twice (L862) | asked twice | asked twice | asked twice | asked twice | asked twice; its rollout script drops it',
    verdict: 'yes',
    what: 'asked once and counted, by a hash of its content; nearly equal ones are a finding of `check`',
    proofs: [
      test(journey('run-embedded'), 'bad rows are counted, named with line and reason, and kept out; duplicates are asked once'),
      test(
        'src/delivery/findings/near-duplicates.test.ts',
        'are found where nine stretches of ten are the same, and not where half of them are',
      ),
    ],
  },
];
