/** A start that goes on: slow and on track, or simply not finished. Pure. */
import type { Account } from './account.ts';
import { lastLines, lookedAt } from './account-view.ts';
import { waitsFor } from './judge-hang.ts';
import type { Judgement } from './judgement.ts';
import { ruleOf } from './rules/all.ts';

/** A shard is some 5 GB: at this pace the disk gives less than 500 MB/s, a quarter of a local NVMe disk. */
const SLOW_SHARD_SECONDS = 10;
/** Graphs mostly take half a GiB to two. */
const LARGE_GRAPHS_GIB = 4;

export function judgeStart(account: Account): Judgement {
  const { phase, compiling, secondsEach, progress, lastBar, facts } = account;
  const given = { state: 'initializing', phase, numbers: {}, notes: [] } as const;
  const waits = waitsFor(account);
  if (waits !== undefined) return { ...given, rule: waits.rule, numbers: waits.numbers, confidence: 'medium', evidence: [waits] };
  if (compiling !== undefined) {
    const kernel = account.found.findLast(({ rule }) => rule.state === 'initializing');
    if (kernel !== undefined)
      return { ...given, phase: phase === '' ? 'jit-compile' : phase, rule: kernel.rule, confidence: 'high', evidence: [kernel] };
  }
  const isLoading = phase === 'weight-loading' && progress !== undefined && progress.done < progress.of;
  if (isLoading && lastBar !== undefined && secondsEach !== undefined && secondsEach >= SLOW_SHARD_SECONDS)
    return { ...given, rule: ruleOf('slow-storage'), confidence: 'medium', evidence: [lastBar] };
  if (account.graphs !== undefined && facts.engine === 'vllm' && (facts.graphsGiB ?? 0) >= LARGE_GRAPHS_GIB)
    return { ...given, rule: ruleOf('cuda-graph-memory-large'), confidence: 'medium', evidence: [account.graphs] };
  if (account.recognised === 0 || account.openTraceback !== undefined)
    return {
      ...given,
      rule: ruleOf('unknown'),
      confidence: 'low',
      evidence: account.openTraceback === undefined ? lastLines(account) : [account.openTraceback],
      notes: lookedAt(account),
    };
  return { ...given, rule: ruleOf('none'), confidence: phase === '' ? 'low' : 'high', evidence: lastLines(account) };
}
