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
  if (/unified/i.test(`${row.gpu} ${row.notes}`))
    reasons.push('unified memory: what the host holds counts against the budget, and no formula sees it');
  if (/custom build|fork|plugin|connector/i.test(`${row.other_flags} ${row.notes}`))
    reasons.push('a build or plug-in of its own');
  if (facts !== undefined && row.engine === 'sglang') reasons.push(impliedFraction(known.facts, printed, best));
  if (best.errorPercent > 5) reasons.push(`the guesses leave ±${best.errorPercent.toFixed(0)} %`);
  return `${(miss * 100).toFixed(1)} %: ${reasons.join('; ')}`;
}

/** The fraction that the printed pool and the facts allow: tells a flag that the line does not have. */
function impliedFraction({ weightsGiBPerGpu, freeBeforeLoadGiB, freeAfterLoadGiB }, printed, best) {
  const after = freeAfterLoadGiB?.value ?? freeBeforeLoadGiB.value - weightsGiBPerGpu.value;
  const before = freeBeforeLoadGiB?.value ?? after + (weightsGiBPerGpu?.value ?? best.weightsGiBPerGpu);
  const pool = (printed * best.bytesPerToken) / 2 ** 30;
  return `pool and facts imply a fraction of ${(1 - (after - pool) / before).toFixed(3)}, and ${best.launch.memoryFraction.toFixed(3)} was assumed`;
}
