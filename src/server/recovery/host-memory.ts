/** The hierarchical cache takes more host memory than there is: a smaller one, by the numbers, and none in the end. Pure. */
import type { Plan } from '../../capacity/plan-launch.ts';
import { changeFlag, flagValue } from './changes.ts';
import { judgeCandidate } from './judge-candidate.ts';
import { type Predict, summarise } from './predict-candidate.ts';
import type { LaunchChange, LaunchTry, RecoveryQuestion } from './recovery.ts';
import type { Outcome } from './search-memory.ts';

/** SGLang leaves 10 GB of the host to others; a tenth of the rest is for what ranks need beside the cache. */
const KEPT_GB = 10;
const SHARE = 0.9;

export function shrinkHostCache(question: RecoveryQuestion, predict: Predict): Outcome {
  const { engine, tries } = question;
  const last = tries.at(-1);
  if (last === undefined || engine !== 'sglang' || flagValue(engine, last.flags, 'enable-hierarchical-cache') !== true)
    return { found: undefined, passedOver: ['the launch has no hierarchical cache that could be smaller'] };
  const sizes = smallerSizes(question, last, predict(last.flags));
  const passedOver: string[] = [];
  for (const changes of [...sizes, withoutCache(question, last)]) {
    const { plan, refusal } = judgeCandidate(question, changes, predict);
    const lacks =
      refusal || (plan === undefined || plan.prediction.verdict !== 'refuses-to-start' ? '' : plan.prediction.because);
    if (lacks === '') {
      const because = changes[0]?.because ?? '';
      return { found: { changes, because, predicted: plan === undefined ? undefined : summarise(plan) }, passedOver };
    }
    passedOver.push(
      `${changes.map(({ name, to }) => `${name} ${to === undefined ? 'left out' : String(to)}`).join(', ')}: ${lacks}`,
    );
  }
  return { found: undefined, passedOver };
}

/** Sizes in decimal GB for each rank: what the host's free memory gives, or half of what there was. */
function smallerSizes({ engine, limits }: RecoveryQuestion, last: LaunchTry, plan: Plan | undefined): LaunchChange[][] {
  const written = flagValue(engine, last.flags, 'hicache-size');
  const planned = plan === undefined ? 0 : (plan.prediction.hostCache.GiBPerRank * 2 ** 30) / 1e9;
  const has = typeof written === 'number' && written > 0 ? written : planned;
  const ranks = plan === undefined ? ranksOf(engine, last) : plan.launch.tp * plan.launch.pp;
  const free = limits?.hostFreeGB ?? freeInLog(last);
  const change = (to: number, because: string): LaunchChange[] => [
    changeFlag({ engine, flags: last.flags }, 'hicache-size', to, because),
  ];
  const fitting = free === undefined ? 0 : Math.floor((SHARE * Math.max(0, free - KEPT_GB)) / ranks);
  const found: LaunchChange[][] = [];
  if (fitting >= 1 && (has === 0 || fitting < has) && free !== undefined)
    found.push(
      change(
        fitting,
        `${free.toFixed(0)} GB of host memory are free and ${KEPT_GB} stay for others: ${fitting} GB for each of ${ranks} ranks`,
      ),
    );
  const half = Math.floor(has / 2);
  if (half >= 1 && (free === undefined || fitting < 1))
    found.push(change(half, `half of the ${has.toFixed(0)} GB that each of ${ranks} ranks asked for`));
  return found;
}

function withoutCache({ engine }: RecoveryQuestion, last: LaunchTry): LaunchChange[] {
  const at = { engine, flags: last.flags };
  const because =
    'no host memory for a hierarchical cache; it helps prompts that share a beginning, not how many are answered at once';
  const others = ['hicache-size', 'hicache-ratio', 'hicache-write-policy'].filter(
    (name) => flagValue(engine, last.flags, name) !== undefined,
  );
  return ['enable-hierarchical-cache', ...others].map((name) => changeFlag(at, name, undefined, because));
}

function ranksOf(engine: RecoveryQuestion['engine'], last: LaunchTry): number {
  const [tp, pp] = ['tp-size', 'pp-size'].map((name) => Number(flagValue(engine, last.flags, name) ?? 1));
  return Math.max(1, (tp ?? 1) * (pp ?? 1));
}

/** `Requesting 64.00 GB but only have 41.20 GB free`: the least that any rank saw. */
function freeInLog({ verdict }: LaunchTry): number | undefined {
  const seen = verdict.evidence.flatMap(({ text }) => {
    const found = /only have ([\d.]{1,12}) GB free/.exec(text);
    return found === null ? [] : [Number(found[1]) + KEPT_GB]; // the engine has taken its 10 GB off already
  });
  return seen.length === 0 ? undefined : Math.min(...seen);
}
