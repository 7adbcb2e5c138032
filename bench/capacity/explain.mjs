/** Why a line misses: from what is known about it, never from its id. */
const LARGE = 0.05;

export function explain({ row, known, printed, facts, bare, why }) {
  if (why !== undefined) return `not planned: ${why}`;
  const best = facts ?? bare;
  const miss = best.poolTokens / printed - 1;
  if (Math.abs(miss) <= LARGE) return '';
  const reasons = [...known.why];
  if (best.notModelled.length > 0) reasons.push(`not modelled: ${best.notModelled.join(', ')}`);
  if (row.engine === 'sglang' && row.mem_fraction_static == null && row.log_facts?.effective_mem_fraction_static == null)
    reasons.push('no memory fraction in the line');
  if (row.engine === 'vllm' && row.gpu_memory_utilization == null) reasons.push('no utilization in the line: 0.9 is assumed');
  if (known.version === '') reasons.push('no version in the line');
  if (row.gpu == null)
    reasons.push(
      row.gpu_mem_gb == null
        ? 'the GPU is not named: a card of the size that was free is assumed'
        : 'only the class of the card is known',
    );
  if (facts === undefined) reasons.push('no memory facts in the line');
  if (best.errorPercent > 5) reasons.push(`the guesses leave ±${best.errorPercent.toFixed(0)} %`);
  return `${(miss * 100).toFixed(1)} %: ${reasons.join('; ')}`;
}
