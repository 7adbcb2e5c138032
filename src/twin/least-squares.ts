/** Least squares with a prior and without negative answers, for a handful of unknowns. */

export interface Prior {
  readonly mean: readonly number[];
  readonly deviation: readonly number[];
  /** Of each target, as a share of it. */
  readonly relativeError: number;
}

/**
 * argmin Σ((row·x − target) ÷ (relativeError·target))² + Σ((x − mean) ÷ deviation)². An unknown that would fall below zero is
 * set to 0 and the rest is solved again.
 */
export function leastSquares(rows: readonly (readonly number[])[], targets: readonly number[], prior: Prior): number[] {
  let free = prior.mean.map((_, at) => at);
  for (;;) {
    const solved = solve(...normalEquations(rows, targets, { ...prior, free }));
    const kept = free.filter((_, at) => (solved[at] ?? 0) >= 0);
    if (kept.length === free.length) {
      const answer: number[] = prior.mean.map(() => 0);
      free.forEach((unknown, at) => {
        answer[unknown] = solved[at] ?? 0;
      });
      return answer;
    }
    free = kept;
  }
}

function normalEquations(
  rows: readonly (readonly number[])[],
  targets: readonly number[],
  { mean, deviation, relativeError, free }: Prior & { readonly free: readonly number[] },
): [number[][], number[]] {
  const certainty = (unknown: number) => 1 / (deviation[unknown] ?? 1) ** 2;
  const weight = (nth: number) => 1 / (relativeError * (targets[nth] ?? 1)) ** 2;
  const sum = (term: (row: readonly number[], nth: number) => number) => rows.reduce((all, row, nth) => all + term(row, nth), 0);
  const matrix = free.map((i) =>
    free.map((j) => (i === j ? certainty(i) : 0) + sum((row, nth) => weight(nth) * (row[i] ?? 0) * (row[j] ?? 0))),
  );
  const right = free.map(
    (i) => (mean[i] ?? 0) * certainty(i) + sum((row, nth) => weight(nth) * (row[i] ?? 0) * (targets[nth] ?? 0)),
  );
  return [matrix, right];
}

/** Gauss and Jordan; the prior keeps the matrix positive definite, so no pivoting is needed. */
function solve(matrix: readonly (readonly number[])[], right: readonly number[]): number[] {
  let lines = matrix.map((row, at) => [...row, right[at] ?? 0]);
  for (let at = 0; at < right.length; at++) {
    const pivot = (lines[at] ?? []).map((value) => value / (lines[at]?.[at] ?? 1));
    lines = lines.map((line, nth) =>
      nth === at ? pivot : line.map((value, column) => value - (line[at] ?? 0) * (pivot[column] ?? 0)),
    );
  }
  return lines.map((line) => line.at(-1) ?? 0);
}
