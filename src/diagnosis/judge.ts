/** An account of a log → the verdict. Pure: one decision, from the gravest state down; the judges of each state stand beside it. */
import type { Account, Found, Sighting } from './account.ts';
import { hasWorked, lastAnswer, lastWork, lookedAt, phaseNow } from './account-view.ts';
import { judgeDeath } from './judge-death.ts';
import { judgeHang } from './judge-hang.ts';
import { judgeLoad, judgeRetractions } from './judge-load.ts';
import { type JudgeOptions, judgeSilence } from './judge-silence.ts';
import { judgeStart } from './judge-start.ts';
import type { Judgement } from './judgement.ts';
import { ruleOf } from './rules/all.ts';
import type { Phase } from './verdict.ts';

export function judge(account: Account, options: JudgeOptions): Judgement {
  const silence = judgeSilence(account, options);
  return crashed(account) ?? judgeHang(account, silence) ?? degraded(account) ?? alive(account);
}

function crashed(account: Account): Judgement | undefined {
  const death = judgeDeath(account);
  if (death === undefined) return undefined;
  const { cause, proof, isGuess } = death;
  if (cause === undefined) {
    return {
      ...{ state: 'crashed', phase: phaseNow(account), rule: ruleOf('unknown'), numbers: {} },
      confidence: isGuess ? 'low' : 'medium',
      evidence: proof.slice(0, 3),
      notes: lookedAt(account),
    };
  }
  const same = account.found.filter(({ rule }) => rule.code === cause.rule.code);
  const other = proof.filter(({ line }) => same.every((one) => one.line !== line));
  const proofs = [...other.filter(({ line }) => line > cause.line), ...other];
  return {
    state: 'crashed',
    phase: crashPhase(cause, account),
    rule: cause.rule,
    numbers: numbersOf(same),
    confidence: cause.rule.weight === 'root' ? 'high' : 'medium',
    evidence: [cause, ...same.filter(({ line }) => line !== cause.line).slice(0, 2), ...proofs.slice(0, 1)],
    notes: cause.rule.weight === 'wrapper' ? lookedAt(account) : [],
  };
}

const FIRST_COLLECTIVES = 5;

/** Where it died: as the sign itself says, else in the phase that had been reached. */
function crashPhase({ rule, phase, numbers }: Found, account: Account): Phase | '' {
  // A process group's first collectives: nothing was computed yet.
  if ((numbers['seq'] ?? Number.POSITIVE_INFINITY) <= FIRST_COLLECTIVES) return 'distributed-init';
  if (rule.phase !== undefined) return rule.phase;
  return phase === '' ? phaseNow(account) : phase;
}

function numbersOf(found: readonly Found[]): Readonly<Record<string, number>> {
  return Object.assign({}, ...found.map(({ numbers }) => numbers).reverse());
}

function degraded(account: Account): Judgement | undefined {
  const given = { state: 'degraded', phase: 'serving', numbers: {}, notes: [] } as const;
  const retractions = judgeRetractions(account);
  if (retractions !== undefined)
    return { ...given, rule: ruleOf('kv-pool-full-retraction'), confidence: 'high', evidence: retractions.slice(-3) };
  const load = judgeLoad(account);
  if (load !== undefined && ruleOf(load.code).state === 'degraded')
    return { ...given, rule: ruleOf(load.code), confidence: 'medium', evidence: ends(load.evidence) };
  if (account.noticesAtWork > account.notices.length && hasWorked(account))
    return {
      ...given,
      rule: ruleOf('slow-engine-steps'),
      confidence: 'medium',
      evidence: [...account.notices, ...account.work, ...lastAnswer(account)].slice(-3),
    };
  return undefined;
}

/** The first reading and the last two: they show the trend. */
function ends(evidence: readonly Sighting[]): Sighting[] {
  return [...evidence.slice(0, -2).slice(0, 1), ...evidence.slice(-2)];
}

function alive(account: Account): Judgement {
  const given = { numbers: {}, notes: [] } as const;
  // Answers that came after it show that it is over, or concerned one request.
  const refused = account.found.findLast(
    ({ rule, line }) => rule.state === 'serving' && line > (account.lastProgress?.line ?? 0),
  );
  if (refused !== undefined)
    return { ...given, state: 'serving', phase: 'serving', rule: refused.rule, confidence: 'high', evidence: [refused] };
  if (hasWorked(account)) {
    const load = judgeLoad(account);
    const rule = ruleOf(load?.code ?? 'none');
    return {
      ...given,
      state: 'serving',
      phase: 'serving',
      rule,
      confidence: 'high',
      evidence: load === undefined ? lastWork(account) : ends(load.evidence),
    };
  }
  if (account.ready !== undefined)
    return { ...given, state: 'ready', phase: '', rule: ruleOf('none'), confidence: 'high', evidence: [account.ready] };
  return judgeStart(account);
}
