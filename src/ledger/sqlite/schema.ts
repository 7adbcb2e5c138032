/**
 * The tables of a ledger, as SQL. Every other file of this folder holds the statements of one concern.
 *
 * - A prompt is known inside by its `ordinal` (order of enrolment over the whole run), not by its 26-character id: rows
 *   that are leased and finished together then lie on the same pages, and a commit of 256 records touches a few pages
 *   of each table instead of 256.
 * - Counters are columns of `partitions`, changed by the transaction that changes what they count. The CHECK makes a
 *   counter that lost a prompt impossible to commit.
 * - `records` is keyed by where the bytes lie, so reading a partition is a walk in file order. The partial unique index
 *   makes a second live record of a prompt impossible.
 * - A prompt that `replaces` has a live record and waits for a better one; it is `begun`, because its tokens are spent already.
 * - Partial indexes hold only what is waiting or leased: a resume with a million finished prompts reads nothing of them.
 */

/** Raise it with every change that an older Aerie would misread; `open-ledger.ts` refuses a higher one. */
export const FORMAT = 4;
/** The oldest format that is carried over; those before it were never released. */
export const OLDEST_FORMAT = 3;

/**
 * What format 4 has beside format 3: launches whose records may not be used, launches that had a part in a conversation
 * beside the one that its rows name, and rules that were added to a run that had begun.
 */
const NEW_IN_4 = ['withdrawals', 'also_by', 'policies'] as const;
const TABLES_OF_4: Readonly<Record<(typeof NEW_IN_4)[number], string>> = {
  withdrawals: `(
  launch  INTEGER PRIMARY KEY,
  because TEXT NOT NULL,
  at      INTEGER NOT NULL
) STRICT`,
  also_by: `(
  prompt INTEGER NOT NULL,
  launch INTEGER NOT NULL,
  part   TEXT NOT NULL CHECK (part IN ('turns', 'record')), -- of the conversation under way, or of the live record
  PRIMARY KEY (prompt, launch, part)
) STRICT, WITHOUT ROWID`,
  policies: `(
  n    INTEGER PRIMARY KEY,
  rule TEXT NOT NULL UNIQUE, -- as JSON
  at   INTEGER NOT NULL
) STRICT`,
};

/** A reader that may not write has the new tables for itself, empty: a ledger of format 3 has nothing of theirs. */
export const READ_FORMAT_3 = createTables('TEMP');

/**
 * A record of format 3 names the launch of its last turn. Which launches made the turns before is known by their attempts;
 * those of an older record of the same prompt are among them, so that a record may be withdrawn without need, and never left.
 */
export const MIGRATE_FROM_3 = `${createTables('')}
INSERT OR IGNORE INTO also_by (prompt, launch, part)
  SELECT records.prompt, attempts.launch, 'record' FROM records JOIN attempts ON attempts.prompt = records.prompt
  WHERE records.state = 'live' AND records.turns > 1 AND attempts.outcome = 'completed' AND attempts.launch <> records.launch;
UPDATE meta SET value = '4' WHERE key = 'format';
`;

function createTables(where: '' | 'TEMP'): string {
  return NEW_IN_4.map((name) => `CREATE ${where} TABLE ${name} ${TABLES_OF_4[name]};`).join('\n');
}

export const SCHEMA = `
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE partitions (
  ordinal          INTEGER PRIMARY KEY,
  name             TEXT NOT NULL UNIQUE,
  budget           INTEGER NOT NULL,
  prompt_limit     INTEGER NOT NULL,
  enrolment        TEXT NOT NULL DEFAULT 'open' CHECK (enrolment IN ('open', 'limited', 'complete')),
  source_rows      INTEGER NOT NULL DEFAULT 0,
  duplicates       INTEGER NOT NULL DEFAULT 0,
  rejected         INTEGER NOT NULL DEFAULT 0,
  prompts_bytes    INTEGER NOT NULL DEFAULT 0,
  rejected_bytes   INTEGER NOT NULL DEFAULT 0,
  enrolled         INTEGER NOT NULL DEFAULT 0,
  waiting          INTEGER NOT NULL DEFAULT 0 CHECK (waiting >= 0),
  leased           INTEGER NOT NULL DEFAULT 0 CHECK (leased >= 0),
  done             INTEGER NOT NULL DEFAULT 0 CHECK (done >= 0),
  aside            INTEGER NOT NULL DEFAULT 0 CHECK (aside >= 0),
  dropped          INTEGER NOT NULL DEFAULT 0 CHECK (dropped >= 0),
  redoing          INTEGER NOT NULL DEFAULT 0 CHECK (redoing BETWEEN 0 AND waiting + leased),
  spent_tokens     INTEGER NOT NULL DEFAULT 0 CHECK (spent_tokens >= 0),
  generated_tokens INTEGER NOT NULL DEFAULT 0 CHECK (generated_tokens >= spent_tokens),
  answers          INTEGER NOT NULL DEFAULT 0 CHECK (answers >= 0),
  truncated        INTEGER NOT NULL DEFAULT 0 CHECK (truncated BETWEEN 0 AND answers),
  pin_path         TEXT NOT NULL DEFAULT '',
  pin_bytes        INTEGER NOT NULL DEFAULT 0,
  pin_mtime_ms     REAL NOT NULL DEFAULT 0,
  pin_sha256       TEXT NOT NULL DEFAULT '',
  pin_hashed_bytes INTEGER NOT NULL DEFAULT 0,
  pin_files        TEXT NOT NULL DEFAULT '', -- of several files: the pin of each, as JSON
  CHECK (enrolled = waiting + leased + done + aside + dropped)
) STRICT;

CREATE TABLE prompts (
  ordinal   INTEGER PRIMARY KEY,
  partition INTEGER NOT NULL REFERENCES partitions (ordinal),
  id        TEXT NOT NULL,
  offset    INTEGER NOT NULL,
  bytes     INTEGER NOT NULL,
  turns     INTEGER NOT NULL,
  state     TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'leased', 'done', 'aside', 'dropped')),
  fence     INTEGER NOT NULL DEFAULT 0,
  answered  INTEGER NOT NULL DEFAULT 0,
  round     INTEGER NOT NULL DEFAULT 0,
  replaces  INTEGER NOT NULL DEFAULT 0 CHECK (replaces = 0 OR (replaces = 1 AND state IN ('waiting', 'leased'))),
  begun     INTEGER NOT NULL GENERATED ALWAYS AS (answered > 0 OR replaces = 1) VIRTUAL,
  UNIQUE (partition, id)
) STRICT;
CREATE INDEX prompts_waiting ON prompts (partition, begun DESC, ordinal) WHERE state = 'waiting';
CREATE INDEX prompts_leased ON prompts (partition) WHERE state = 'leased';

CREATE TABLE asides (
  prompt  INTEGER PRIMARY KEY REFERENCES prompts (ordinal),
  reason  TEXT NOT NULL,
  because TEXT NOT NULL
) STRICT;

CREATE TABLE launches (
  id             INTEGER PRIMARY KEY,
  server         TEXT NOT NULL,
  engine         TEXT NOT NULL,
  engine_version TEXT NOT NULL,
  kv_cache_dtype TEXT NOT NULL,
  weights        TEXT NOT NULL,
  policy_hash    TEXT NOT NULL,
  detail         TEXT NOT NULL,
  started_at     INTEGER NOT NULL
) STRICT;

CREATE TABLE turns (
  prompt    INTEGER NOT NULL REFERENCES prompts (ordinal),
  turn      INTEGER NOT NULL,
  body      TEXT NOT NULL,
  tokens    INTEGER NOT NULL CHECK (tokens >= 0),
  truncated INTEGER NOT NULL CHECK (truncated IN (0, 1)),
  launch    INTEGER NOT NULL REFERENCES launches (id),
  UNIQUE (prompt, turn)
) STRICT;

CREATE TABLE attempts (
  n          INTEGER PRIMARY KEY,
  prompt     INTEGER NOT NULL REFERENCES prompts (ordinal),
  turn       INTEGER NOT NULL,
  launch     INTEGER NOT NULL REFERENCES launches (id),
  started_at INTEGER NOT NULL,
  ended_at   INTEGER NOT NULL,
  outcome    TEXT NOT NULL,
  status     INTEGER NOT NULL,
  because    TEXT NOT NULL,
  tokens     INTEGER NOT NULL CHECK (tokens >= 0)
) STRICT;

CREATE TABLE outcomes (
  outcome  TEXT PRIMARY KEY,
  attempts INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE shards (
  partition       INTEGER NOT NULL REFERENCES partitions (ordinal),
  number          INTEGER NOT NULL,
  committed_bytes INTEGER NOT NULL,
  records         INTEGER NOT NULL,
  sealed          INTEGER NOT NULL DEFAULT 0 CHECK (sealed IN (0, 1)),
  sha256          TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (partition, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE records (
  partition INTEGER NOT NULL,
  shard     INTEGER NOT NULL,
  offset    INTEGER NOT NULL,
  bytes     INTEGER NOT NULL CHECK (bytes > 0),
  sha256    TEXT NOT NULL,
  prompt    INTEGER NOT NULL REFERENCES prompts (ordinal),
  state     TEXT NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'superseded', 'withdrawn')),
  tokens    INTEGER NOT NULL CHECK (tokens >= 0),
  turns     INTEGER NOT NULL,
  truncated INTEGER NOT NULL,
  launch    INTEGER NOT NULL REFERENCES launches (id),
  PRIMARY KEY (partition, shard, offset),
  FOREIGN KEY (partition, shard) REFERENCES shards (partition, number)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX records_live ON records (prompt) WHERE state = 'live';

CREATE TABLE events (
  n       INTEGER PRIMARY KEY AUTOINCREMENT,
  at      INTEGER NOT NULL,
  kind    TEXT NOT NULL,
  subject TEXT NOT NULL,
  facts   TEXT NOT NULL
) STRICT;

${createTables('')}

INSERT INTO meta (key, value) VALUES ('format', '${FORMAT}'), ('identity', '{}');
`;
