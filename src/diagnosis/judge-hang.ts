/** Servers that stand still, and of what: figures that do not move, health checks without an answer, notices, or silence. Pure. */
import type { Account, Found } from './account.ts';
import { hasWorked, lastLines, lookedAt, phaseNow } from './account-view.ts';
import { judgeLoad } from './judge-load.ts';
import { noticesTooLong, type Silence } from './judge-silence.ts';
import type { Judgement } from './judgement.ts';
import { phaseOrder } from './phases.ts';
import { ruleOf } from './rules/all.ts';

/** Undefined where the server moves, or nobody can tell. */
export function judgeHang(account: Account, silence: Silence): Judgement | undefined {
  const given = { state: 'hung', numbers: {}, notes: [] } as const;
  const load = judgeLoad(account);
  if (load !== undefined && ruleOf(load.code).state === 'hung')
    return { ...given, phase: 'serving', rule: ruleOf(load.code), confidence: 'medium', evidence: load.evidence };
  const heart = stoppedHeart(account, silence);
  if (heart !== undefined) return { ...given, phase: 'serving', rule: heart.rule, confidence: 'high', evidence: [heart] };
  const notices = noticesTooLong(account) ?? (silence.isTooLong && account.notices.length > 0 ? account.notices : undefined);
  if (notices !== undefined)
    return {
      ...given,
      phase: phaseNow(account),
      rule: ruleOf('worker-stuck-shm-broadcast', 'hung'),
      confidence: 'medium',
      evidence: [...account.work.slice(-1), ...notices.slice(0, 2)],
    };
  if (!silence.isTooLong) return undefined;
  const isAtWork = hasWorked(account);
  if (isAtWork || account.ready !== undefined) return account.work.at(-1)?.running ? silentAtWork(account, given) : undefined;
  return silentStart(account, given);
}

type Given = Pick<Judgement, 'numbers' | 'notes'> & { readonly state: 'hung' };

function silentAtWork(account: Account, given: Given): Judgement {
  return {
    ...given,
    phase: 'serving',
    rule: ruleOf('worker-stuck-no-progress'),
    confidence: 'medium',
    evidence: account.work.slice(-1),
  };
}

function silentStart(account: Account, given: Given): Judgement {
  const waits = waitsFor(account);
  const evidence = lastLines(account);
  const { phase } = account;
  if (waits !== undefined)
    return {
      ...given,
      phase: waits.rule.phase ?? phase,
      rule: waits.rule,
      numbers: waits.numbers,
      confidence: 'high',
      evidence: [waits],
    };
  const stands = (code: string) => ({ ...given, phase, rule: ruleOf(code), confidence: 'medium' as const, evidence });
  if (phase === 'image-fetch' && !account.phaseEnded) return stands('container-image-stalled');
  if (account.isMultiNode && account.communicators !== undefined && !account.hasLoaded) return stands('multi-node-comm-stall');
  if (phase === 'distributed-init' && account.nccl !== undefined) return stands('nccl-init-hang');
  if (/placement group/i.test(account.phaseBegan?.text ?? '')) return stands('ray-placement-group-unsatisfiable');
  return { ...stands('unknown'), confidence: 'low', notes: lookedAt(account) };
}

/** SGLang's health check that got no answer: of minutes, or with a clock that says so; work after it makes it a false alarm. */
function stoppedHeart(account: Account, silence: Silence): Found | undefined {
  const beats = account.found.filter(({ rule }) => rule.code === 'scheduler-stuck-no-heartbeat');
  const last = beats.at(-1);
  if (last === undefined || (account.lastProgress?.line ?? 0) > last.line) return undefined;
  const first = beats.find(({ line }) => line > (account.lastProgress?.line ?? 0)) ?? last;
  const lasted = first.at === undefined || last.at === undefined ? 0 : last.at - first.at;
  return silence.isTooLong || lasted >= MINUTE || heartbeatAge(last.text) >= MINUTE ? last : undefined;
}

const MINUTE = 60_000;
const DAY = 86_400_000;

function heartbeatAge(text: string): number {
  const found = /tic start time: (\d\d):(\d\d):(\d\d).*last_heartbeat time: (\d\d):(\d\d):(\d\d)/s.exec(text);
  if (found === null) return 0;
  const [h = 0, m = 0, s = 0, hb = 0, mb = 0, sb = 0] = found.slice(1).map(Number);
  return (((h - hb) * 3600 + (m - mb) * 60 + (s - sb)) * 1000 + DAY) % DAY;
}

/** What the start was last seen to wait for, if it has not gone on since. */
export function waitsFor({ found, phase }: Account): Found | undefined {
  return found.findLast(({ rule }) => {
    const isStart = rule.state === 'hung' && rule.phase !== undefined && rule.phase !== 'serving';
    return isStart && phaseOrder(phase) <= phaseOrder(rule.phase ?? phase);
  });
}
