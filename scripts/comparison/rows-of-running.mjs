/** How requests are driven, and what is left after a kill. The cells of `peers` stand in the order of generators.mjs. */
import { aerie, npm, test } from './proofs.mjs';

const journey = (name) => `test/journeys/${name}.test.ts`;
const FAULTS = 'test/contracts/generation-faults.test.ts';

export const DRIVING = [
  {
    feature: 'several servers',
    peers:
      'yes (L168), in turn | no | by shard files | no (L482) | yes, in turn (L329) | yes, in turn, health looked at (L219) | ports 6000+ of this machine (L37)',
    verdict: 'yes',
    what: 'attached ones of several engines in one run',
    proofs: [test(journey('attached'), 'several endpoints: the slow one gets less, one that dies and comes back costs nothing')],
  },
  {
    feature: 'work-conserving, failover',
    peers:
      'no: waits for the next in turn (L464–504) | one server | no | no: a barrier per shard (L363) | no (L332) | partly: drops dead servers (L317), waits for the next in turn (L361) | no (L55)',
    verdict: 'yes',
    what: 'whoever is ready, well and has the fewest requests in flight takes the next one; the dead are waited for while the others go on',
    proofs: [
      test('src/fleet/fleet.test.ts', 'whoever is chosen is ready, and no ready and well one has fewer in flight'),
      test(FAULTS, 'the number asked for is in flight, and with 256 the gate opens by steps'),
      test(journey('attached'), 'several endpoints: the slow one gets less, one that dies and comes back costs nothing'),
    ],
  },
  {
    feature: 'adaptive concurrency',
    peers: 'no | no (a sweep by hand, its pull request 1037) | no | no | no | no | no',
    verdict: 'partly',
    what: '`in-flight: auto` follows what the KV pools hold at the mean length of the answers so far; it does not follow the measured speed',
    proofs: [
      test('src/generation/auto-gate.test.ts', 'the pools of the story: at least what was seen to run, and not twice as many'),
      test(journey('auto-gate'), 'against a server with a known pool the gate follows it, and the requests follow the gate'),
    ],
  },
  {
    feature: 'back-pressure, bounded memory',
    peers:
      'yes (L468) | yes, a queue of 4 × N (L797) | no: file and futures at once (L62, L195) | per shard (L451) | yes (L332) | partly: in flight bounded, the input in memory (L293) | no: 50,000 futures at once (L272)',
    verdict: 'yes',
    what: 'sources stream in batches of 512 rows or 4 MiB, prompts are read as they are leased: 5 GB in 329 MiB',
    proofs: [
      test(
        'src/dataset/open-source.test.ts',
        'batches have at most 512 rows or a little over 4 MiB, and each pin hashes a prefix that covers its rows',
      ),
      test(journey('large-source'), 'a source of 400 MB is enrolled whole in less memory than half of it'),
      npm('bench:large-source'),
    ],
  },
  {
    feature: 'own retries with backoff',
    peers:
      'no, the SDK’s 2 | **yes** (L409) | no, the SDK’s 2 | yes, also of 4xx (L273) | no, the SDK’s 2 | 5 tries, without a wait (L325) | no, the SDK’s 2',
    verdict: 'yes',
    what: 'doubling up to 30 s, half of it random; Retry-After is heeded; a budget of retries',
    proofs: [
      test(
        'src/generation/decide-retry.test.ts',
        'the wait doubles up to half a minute, half of it random; Retry-After is heeded, within reason',
      ),
      test(FAULTS, 'a burst of 5xx for everyone sets nobody aside'),
      test(FAULTS, 'a 429 that says when is waited for'),
    ],
  },
  {
    feature: 'request timeout can be set',
    peers: 'no, the SDK’s 600 s | no, and there is none (L801) | no | **yes** (L512) | no | no | no',
    verdict: 'yes',
    what: '`attempt-timeout`; left out, it follows from what is asked',
    proofs: [
      test(FAULTS, 'requests that hang end at their deadline and are asked again'),
      test('src/generation/deadline.test.ts', 'the run file’s attempt-timeout goes before all that'),
    ],
  },
  {
    feature: 'error record per row',
    peers:
      'yes, no class (L283) | yes, no class (L725) | no, printed (L122) | **no**, the run ends (L285) | yes, no class | yes, lost at the next start (L342) | no, logged (L126)',
    verdict: 'yes',
    what: 'a prompt set aside has its reason, attempts are counted by outcome (refused, failed, lost, malformed, overloaded); refused rows have line and reason',
    proofs: [
      test(FAULTS, 'a prompt that kills the server each time is set aside in the end, and nobody else'),
      test(journey('run-embedded'), 'bad rows are counted, named with line and reason, and kept out; duplicates are asked once'),
      aerie('status RUN'),
    ],
  },
  {
    feature: 'errors tried again on resume',
    peers:
      'no: counted as done (L373) | yes (L344) | partly: not when a later turn failed (L121, L129) | the run had ended | no (L156) | yes (L253) | no (L261)',
    verdict: 'yes',
    what: 'what failed for the server’s sake, by the plain command; what was set aside, by `--retry-failed`',
    proofs: [
      test(journey('superseding'), 'a prompt that was set aside is answered once the reason is gone'),
      aerie('run RUN --retry-failed'),
    ],
  },
];

export const LASTING = [
  {
    feature: 'resume exact',
    peers:
      '**no**, by the number of lines (L373); 97 of 2,000 lost and 97 doubled in three kills | yes, by `primary_id` (L327); without `--resume` it doubles (L814) | yes, by line number (L167) | yes, by shard (L235) | **no**, by the number of lines (L152) | yes, by line number (L234) | **no**, by the number of lines (L261)',
    verdict: 'yes',
    what: '1,004 kills of Aerie, of engines and of both in every phase of a commit: 0 lost, 0 doubled ([torture](torture.md))',
    proofs: [
      npm('torture'),
      test(journey('crash-random'), 'killed at random moments, Aerie, the engine or both, a run has each prompt once'),
      test(journey('crash-planted'), 'killed between fsync and the ledger commit, a record is neither lost nor doubled'),
    ],
  },
  {
    feature: 'survives a torn line',
    peers:
      'counted as a row (L367) | resume yes, the file no (L348) | no, the resume ends (L172) | yes, whole files (L258) | counted as a row (L153) | resume yes, the file no: the next row is glued to it (L251, L349) | counted as a row (L210)',
    verdict: 'yes',
    what: 'what the ledger has not committed is cut at the next start',
    proofs: [
      test(journey('durability'), 'garbage and half a line after the committed bytes are cut, and nothing before them'),
      test(
        'src/shard/shard-writer.test.ts',
        'whatever lies after the committed bytes is cut, and the committed bytes are untouched',
      ),
    ],
  },
  {
    feature: 'fsync',
    peers: 'no | no | no | no | no | no | no',
    verdict: 'yes',
    what: 'shard, then ledger, then word of it, seen from outside by strace',
    proofs: [test(journey('durability'), 'every record is synced before the ledger has it, and the ledger before it is told')],
  },
  {
    feature: 'atomic unit',
    peers: 'none | none: row by row (L712) | none | **shard** (L258) | none | none | none',
    verdict: 'yes',
    what: 'the turn: a conversation goes on in the turn it was killed in; an export is whole or absent',
    proofs: [
      test(journey('resume'), 'a conversation killed in its second turn goes on there, and its ids continue those of the first'),
      test('src/delivery/export-run.test.ts', 'leaves the old export whole when the records end in an error or the signal comes'),
    ],
  },
  {
    feature: 'refuses changed settings on resume',
    peers: 'no | no | no | **yes** (L132); another port too | no | no | no',
    verdict: 'yes',
    what: 'with the difference shown, unless `--amend` records it; another host or port is allowed',
    proofs: [
      test(journey('resume'), 'temperature, cap, seed, model and sources are held, each with the difference shown'),
      test(journey('resume'), 'another port, a new partition, a higher limit and other in-flight are taken over'),
      test(journey('superseding'), 'another source and another cap are recorded, and each record says how it was made'),
    ],
  },
];
