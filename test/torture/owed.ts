/** Which kills a torture owes, which it has made, and the table of both. Pure. */

export const PHASES = ['in flight', 'append–fsync', 'fsync–commit', 'commit–event', 'seal'] as const;
export type Phase = (typeof PHASES)[number];
export type Who = 'aerie' | 'engine' | 'both';

/** One kind of kill: in which phase of a commit, of whom, with how many endpoints. */
export interface Kind {
  readonly phase: Phase;
  readonly who: Who;
  readonly endpoints: number;
}

/** The planted points of `AERIE_CRASH_AT` by phase; requests in flight need none. */
export const POINTS: Readonly<Record<Phase, readonly string[]>> = {
  'in flight': [],
  'append–fsync': ['after-append'],
  'fsync–commit': ['after-sync', 'before-commit'],
  'commit–event': ['after-commit'],
  seal: ['before-seal', 'after-seal-hash'],
};

const ENDPOINTS = [1, 2];

export type Counts = Readonly<Record<string, number>>;

export function nameOf({ phase, who, endpoints }: Kind): string {
  return `${phase} / ${who} / ${endpoints}`;
}

/** An engine alone has no part in a commit, so it is killed in flight only. */
export function allKinds(): readonly Kind[] {
  return PHASES.flatMap((phase) =>
    (['aerie', 'engine', 'both'] as const)
      .filter((who) => who !== 'engine' || phase === 'in flight')
      .flatMap((who) => ENDPOINTS.map((endpoints) => ({ phase, who, endpoints }))),
  );
}

/** At least `kills` in all and in each phase the same, shared evenly among its kinds. */
export function owedFor(kills: number): Counts {
  const perPhase = Math.ceil(kills / PHASES.length);
  const kinds = allKinds();
  return Object.fromEntries(
    kinds.map((kind) => [nameOf(kind), Math.ceil(perPhase / kinds.filter(({ phase }) => phase === kind.phase).length)]),
  );
}

/** Kinds that are still owed with this many endpoints. */
export function stillOwed(owed: Counts, made: Counts, endpoints: number): readonly Kind[] {
  return allKinds().filter((kind) => kind.endpoints === endpoints && (made[nameOf(kind)] ?? 0) < (owed[nameOf(kind)] ?? 0));
}

export function countOf(made: Counts, matches: (kind: Kind) => boolean): number {
  return allKinds()
    .filter(matches)
    .reduce((sum, kind) => sum + (made[nameOf(kind)] ?? 0), 0);
}

export interface Findings {
  readonly lost: number;
  readonly doubled: number;
  readonly other: number;
}

/** What the judge complained about. Lost: shown and gone, asked and without record. Doubled: two live records. */
export function sortComplaints(complaints: readonly string[]): Findings {
  const found = { lost: 0, doubled: 0, other: 0 };
  for (const complaint of complaints) {
    const missing = /: (\d+) of \d+ prompts have no record/.exec(complaint)?.[1];
    if (missing !== undefined) found.lost += Number(missing);
    else if (complaint.includes('was shown as done and is gone')) found.lost += 1;
    else if (complaint.includes('has two live records')) found.doubled += 1;
    else found.other += 1;
  }
  return found;
}

export function renderTable(made: Counts): string {
  const columns = ENDPOINTS.flatMap((endpoints) => (['aerie', 'engine', 'both'] as const).map((who) => ({ who, endpoints })));
  const heads = columns.map(({ who, endpoints }) => `${who}, ${endpoints === 1 ? '1 endpoint' : `${endpoints} endpoints`}`);
  const row = (title: string, inRow: (kind: Kind) => boolean): string => {
    const cells = columns.map((column) =>
      countOf(made, (kind) => inRow(kind) && kind.who === column.who && kind.endpoints === column.endpoints),
    );
    return `| ${[title, ...cells.map((cell) => (cell === 0 ? '' : cell)), countOf(made, inRow)].join(' | ')} |`;
  };
  return [
    `| killed | ${heads.join(' | ')} | all |`,
    `|---${'|---'.repeat(columns.length + 1)}|`,
    ...PHASES.map((phase) => row(phase, (kind) => kind.phase === phase)),
    row('**all**', () => true),
  ].join('\n');
}
