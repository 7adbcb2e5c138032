/**
 * What Aerie promises, as data. `docs/guarantees.md` says the same in plain words; each test that proves one cites its
 * id through `proves(...)`, and `invariants.test.ts` fails for an id that nothing cites.
 */
export interface Invariant {
  readonly promise: string;
  /** Why it matters to the person whose night it is. */
  readonly because: string;
}

export const INVARIANTS = {
  'record:exactly-once': {
    promise:
      'After any number of kills of Aerie, of the engine, or of both, at any moment, each prompt has at most one live record.',
    because: 'A doubled row weighs twice in training, and nobody sees it.',
  },
  'record:shown-is-kept': {
    promise: 'Every record that was ever shown as done is there after any kill.',
    because: 'Hours of GPU time are behind a record.',
  },
  'record:superseded-by-new': {
    promise:
      'A record that is made anew stays live until the new one is committed, which supersedes it in the same transaction; an attempt that comes to nothing leaves it.',
    because: 'Asking for a better answer must never cost the one there is.',
  },
  'policy:later-rule-withdraws': {
    promise:
      'A rule that is added later withdraws the records that break it: they are in no export, their tokens are back in the budget, and their prompts are asked again.',
    because: 'A veto comes when the data is there, and then nobody wants to sort records by hand.',
  },
  'record:durable-before-visible': {
    promise: 'A record is on disk before the ledger has it, and in the ledger before anyone is told.',
    because: 'A power cut must not leave a ledger that points at bytes which never arrived.',
  },
  'record:torn-tail-is-cut': {
    promise: 'Bytes after the last committed one are cut at the next start; bytes before it are never touched.',
    because: 'A torn last line makes a trainer refuse the whole file.',
  },
  'record:ids-from-engine': {
    promise: 'Token ids in a record are those that the engine reported for exactly this answer.',
    because: 'Retokenised text trains a drafter on sequences that the target never produced.',
  },
  'turn:finished-survives': {
    promise: 'A finished turn of an unfinished conversation is kept over a kill and not asked again.',
    because: 'A conversation that dies in turn four must go on in turn four.',
  },
  'answer:continued-is-whole': {
    promise:
      'An answer that was cut at its cap and continued (`truncated: continue`) is one turn, and under greedy sampling id for id the answer that one longer request gives.',
    because: 'A joint that the model never made is a sequence that it would never produce.',
  },
  'resume:same-command': {
    promise: 'The same command resumes, and ends with the same set of prompts done as without any stop.',
    because: 'At four in the morning nobody remembers a second command.',
  },
  'resume:refuses-data-change': {
    promise: 'What would change the data of a begun run is refused with the difference shown, and nothing is changed.',
    because: 'Half a run with one temperature and half with another is no data set.',
  },
  'resume:harmless-changes': {
    promise:
      'Another port, another server flag that is neutral to the numerics, a new partition, a higher budget or limit are taken over.',
    because: 'Machines move and plans grow.',
  },
  'resume:amended-is-recorded': {
    promise:
      'A change of the data that is asked for with --amend is recorded with what was and what is, and each record says how it was made.',
    because: 'A mixture is fine when it is known.',
  },
  'input:bad-row-never-stops': {
    promise: 'A bad input row is counted, named with its line and reason, kept out, and never stops a run.',
    because: 'One bad row in a million must not cost a night.',
  },
  'reply:bad-reply-is-no-record': {
    promise: 'A reply that contradicts itself (counts, ids, not JSON, cut) is never a record.',
    because: 'It would be found weeks later, in the loss curve.',
  },
  'prompt:poison-is-set-aside': {
    promise: 'A prompt that fails again and again while others are served is set aside with its reason, and the run goes on.',
    because: 'One prompt must not hold up the rest.',
  },
  'prompt:too-long-is-named': {
    promise:
      'A prompt that has no room in the context of any server is set aside by name and counted, whatever words the engine has for it; the finished turns of a conversation that outgrows the context are kept as its record.',
    because: 'It is no fault of a server, and with a longer context it is a record.',
  },
  'prompt:ended-can-be-asked-again': {
    promise: 'A prompt without a record (set aside, or dropped because its answer was cut) is asked again with --retry-failed.',
    because: 'The reason is often gone the next morning.',
  },
  'prompt:server-death-blames-nobody': {
    promise: 'A server that dies, hangs or answers 5xx for everyone costs no prompt its place.',
    because: 'An engine can be killed sixty times in a night; the data must still be complete.',
  },
  'budget:stops-admitting': {
    promise: 'A partition stops admitting when spent and expected-in-flight tokens reach its budget; what is under way is kept.',
    because: 'A budget is money.',
  },
  'disk:full-is-resumable': {
    promise: 'A full disk ends the run with a clear error and loses nothing; with space freed the same command goes on.',
    because: 'Disks fill at night.',
  },
  'disk:read-only-is-clear': {
    promise: 'A run folder that cannot be written is an error that says so before anything is asked of a server.',
    because: 'A mount option must not look like a bug.',
  },
  'worker:one-per-run': {
    promise: 'A second worker on the same run is refused with the first one named, and the run is free at once after kill -9.',
    because: 'Two workers would double every row.',
  },
  'stop:drain-commits': {
    promise: 'Ctrl-C finishes and commits what is in flight and says how to resume.',
    because: 'Stopping must be cheap, or people use kill -9.',
  },
  'stop:abort-commits-fast': {
    promise: 'A second Ctrl-C or SIGTERM commits what was answered within ten seconds and says what was given up.',
    because: 'A scheduler sends SIGKILL soon after SIGTERM.',
  },
  'stop:hang-up-is-safe': {
    promise:
      'A terminal that closes kills no run: a worker in it finishes what is in flight, commits and ends; one without a terminal (`--detach`, nohup, a scheduler) goes on.',
    because: 'ssh sessions end.',
  },
  'engine:no-orphan': {
    promise: 'The embedded engine ends when Aerie ends, however Aerie ends.',
    because: 'A leftover holds the memory that the next launch needs.',
  },
  'launch:one-at-a-time': {
    promise: 'A server that Aerie launched is found again after any kill of Aerie: never do two launches of it live.',
    because: 'Two of them share the memory of the GPUs, and both die of it; one that is forgotten costs money.',
  },
  'launch:strangers-are-safe': {
    promise: 'Nothing is ended that Aerie did not start, except the one process that a person names with --kill-holder.',
    because: 'GPUs are shared, and the memory in the way may be a colleague’s night.',
  },
  'machine:away-is-not-dead': {
    promise:
      'A machine that is out of reach is waited for: a dropped connection ends no server, starts none, sets no prompt aside and loses no record.',
    because: 'Cables, laptops and VPNs drop every day; a launch takes a quarter of an hour.',
  },
  'attach:never-stopped': {
    promise: 'A server that Aerie attached to is never stopped, whatever becomes of Aerie.',
    because: 'It is somebody else’s.',
  },
  'export:whole-or-absent': {
    promise: 'An export folder is whole or absent, and holds nothing but data files that trainers accept.',
    because: 'Half an export trains half a drafter.',
  },
  'error:never-a-stack': {
    promise:
      'Hostile command lines, run files, sources, environments, replies and run folders end in an answer or in an error with its code, its exit code and what to type.',
    because: 'A stack trace helps nobody at night, and says nothing about what is safe.',
  },
  'disk:network-refused': {
    promise: 'A run folder on a network file system is refused before anything is made.',
    because: 'Locks and fsync there are not what they say: two workers could hold one run.',
  },
  'secret:never-written': {
    promise: 'A secret named in a run file is in no log, record, event, page or message.',
    because: 'Run folders are shared.',
  },
} as const satisfies Readonly<Record<string, Invariant>>;

export type InvariantId = keyof typeof INVARIANTS;
