/** An account of a log → the verdict. Pure: one decision, from the gravest state down; the judges of each state stand beside it. */
import type { Account, Found, Sighting } from './account.ts';
import { judgeDeath } from './judge-death.ts';
import { judgeLoad, judgeRetractions } from './judge-load.ts';
import { hasCaptured, judgeSilence, noticesTooLong, type Silence } from './judge-silence.ts';
import type { Rule } from './rule.ts';
import { ruleOf } from './rules/all.ts';
import type { Confidence, Phase, State } from './verdict.ts';

/** A cause in a state, before it is put into words. */
export interface Judgement {
  readonly state: State;
  readonly phase: Phase | '';
  readonly rule: Rule;
  readonly numbers: Readonly<Record<string, number>>;
  readonly confidence: Confidence;
  readonly evidence: readonly Sighting[];
  readonly notes: readonly string[];
}

export interface JudgeOptions {
  readonly now?: number;
  /** When the log was last written to, for logs whose lines have no times. */
  readonly lastWritten?: number;
}

export function judge(account: Account, { now, lastWritten }: JudgeOptions): Judgement {
  const silence = judgeSilence(account, now, lastWritten);
  return crashed(account) ?? hung(account, silence) ?? degraded(account) ?? alive(account);
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
  const ends = proof.filter(({ line }) => line > cause.line && same.every((one) => one.line !== line));
  return {
    state: 'crashed',
    phase: crashPhase(cause, account),
    rule: cause.rule,
    numbers: numbersOf(same),
    confidence: cause.rule.weight === 'root' ? 'high' : 'medium',
    evidence: [cause, ...same.filter(({ line }) => line !== cause.line).slice(0, 2), ...ends.slice(0, 1)],
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

function hung(account: Account, silence: Silence): Judgement | undefined {
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
      evidence: notices.slice(0, 2),
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
  const waits = account.found.find(({ rule }) => rule.state === 'hung' && rule.code !== 'scheduler-stuck-no-heartbeat');
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

function degraded(account: Account): Judgement | undefined {
  const given = { state: 'degraded', phase: 'serving', numbers: {}, notes: [] } as const;
  const retractions = judgeRetractions(account);
  if (retractions !== undefined)
    return { ...given, rule: ruleOf('kv-pool-full-retraction'), confidence: 'high', evidence: retractions.slice(-3) };
  const load = judgeLoad(account);
  if (load !== undefined && ruleOf(load.code).state === 'degraded')
    return { ...given, rule: ruleOf(load.code), confidence: 'medium', evidence: load.evidence.slice(-3) };
  if (account.noticesInAll > account.notices.length && hasWorked(account))
    return {
      ...given,
      rule: ruleOf('slow-engine-steps'),
      confidence: 'medium',
      evidence: [...account.notices, ...account.work, ...lastAnswer(account)].slice(-3),
    };
  return undefined;
}

function alive(account: Account): Judgement {
  const given = { numbers: {}, notes: [] } as const;
  const refused = account.found.find(({ rule }) => rule.state === 'serving');
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
      evidence: load?.evidence.slice(-3) ?? lastWork(account),
    };
  }
  if (account.ready !== undefined)
    return { ...given, state: 'ready', phase: '', rule: ruleOf('none'), confidence: 'high', evidence: [account.ready] };
  return initializing(account);
}

/** A shard is some 5 GB: at this pace the disk gives less than 250 MB/s. */
const SLOW_SHARD_SECONDS = 20;
/** Graphs mostly take half a GiB to two. */
const LARGE_GRAPHS_GIB = 4;

function initializing(account: Account): Judgement {
  const { phase, compiling, secondsEach, progress, lastBar, facts } = account;
  const given = { state: 'initializing', phase, numbers: {}, notes: [] } as const;
  const waits = account.found.find(({ rule }) => rule.state === 'hung' && rule.phase === 'distributed-init');
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

export function hasWorked({ work, answers }: Account): boolean {
  return (
    answers.good + answers.refused > 0 ||
    work.some(({ isProbe, running, generated, prompted }) => !isProbe && running + generated + prompted > 0)
  );
}

function phaseNow(account: Account): Phase | '' {
  const hasStarted = hasWorked(account) || account.ready !== undefined || (hasCaptured(account) && account.notices.length > 0);
  return hasStarted ? 'serving' : account.phase;
}

function lastAnswer({ answers }: Account): Sighting[] {
  return answers.last === undefined ? [] : [answers.last];
}

function lastWork(account: Account): Sighting[] {
  return [...account.work.slice(-2), ...lastAnswer(account)].sort((a, b) => a.line - b.line);
}

function lastLines({ phaseBegan, lastBar, tail }: Account): Sighting[] {
  const last = tail
    .filter(({ text }) => text.trim() !== '')
    .slice(-1)
    .map((line) => ({ ...line, at: undefined }));
  const lines = [phaseBegan, lastBar, ...last].filter((one) => one !== undefined);
  return lines.filter((one, at) => lines.findIndex(({ line }) => line === one.line) === at);
}

function lookedAt(account: Account): string[] {
  const { lines, facts, phase, deaths, found } = account;
  const seen = [
    `${lines} lines were read${facts.engine === undefined ? '; no line is of SGLang or vLLM' : ` of ${facts.engine}`}.`,
  ];
  if (phase !== '') seen.push(`The start had reached ${phase}.`);
  if (deaths.length > 0)
    seen.push(
      `Lines that say that a part ended: ${deaths
        .map(({ line }) => line)
        .slice(0, 5)
        .join(', ')}.`,
    );
  seen.push(
    found.length === 0
      ? 'No line fits a rule.'
      : `Lines that fit a rule and do not explain it: ${found
          .map(({ line, rule }) => `${line} (${rule.code})`)
          .slice(0, 5)
          .join(', ')}.`,
  );
  return seen;
}
