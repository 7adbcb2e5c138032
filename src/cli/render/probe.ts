/** The answer of `aerie probe`, in two parts: what is known after seconds, and what it means. Pure but for colour. */
import type {
  EarlyServer,
  ProbedCapacity,
  ProbedHealth,
  ProbedMachine,
  ProbedServer,
  ProbeReport,
} from '../../app/probe/report.ts';
import { formatBytes, formatCount, formatDuration } from '../../base/units.ts';
import { stdoutColour as pc } from './colour.ts';

const WIDTH = 11;
const LINE_SHOWN = 200;
const WORDS = {
  loading: 'loading and slow?',
  hung: 'hung?',
  crashed: 'crashed?',
  busy: 'well and busy?',
} as const;
const WELL = new Set(['ready', 'serving']);

/** Facts alone, while the rest is waited for. */
export function renderEarly(servers: readonly EarlyServer[]): string {
  if (servers.length === 0) return 'nothing is known yet: the machine has not answered';
  return servers.flatMap((server) => [...renderSeen(server, 'no answer yet'), '']).join('\n');
}

/** `told`: what was rendered before; lines of it that still hold are not said twice. */
export function renderProbe(report: ProbeReport, told = ''): string {
  const before = new Set(
    told.split('\n').filter((line) => line.startsWith(' ') || /^(process|log|holds|KV cache|differs) /.test(line)),
  );
  return renderWhole(report)
    .split('\n')
    .filter((line) => !before.has(line))
    .join('\n');
}

function renderWhole({ servers, machines, isWell, tookMs, taken }: ProbeReport): string {
  if (servers.length === 0)
    return [
      `No server of SGLang or vLLM was found: ${taken}, looked at for ${formatDuration(tookMs)}`,
      ...machines.flatMap(renderMachine),
    ].join('\n');
  const ready = servers.filter(({ isReady, isPolicyKept }) => isReady && isPolicyKept).length;
  const sum = isWell ? pc.green('well') : pc.red('not well');
  const rules = servers.some(({ policy }) => policy.length > 0) ? ' with no rule broken' : '';
  return [
    ...servers.flatMap((server) => [...renderJudged(server), '']),
    ...machines.flatMap(renderMachine),
    field('in all', `${sum}: ${ready} of ${servers.length} ready${rules}; ${taken}, looked at for ${formatDuration(tookMs)}`),
  ].join('\n');
}

/** `without`: what a health check that has no answer is called: it may come yet, or not any more. */
function renderSeen(
  { name, machine, address, engine, process, log, health, capacity }: EarlyServer,
  without: 'no answer yet' | 'not known' = 'not known',
): string[] {
  const where = address === '' ? machine : `${address} of ${machine}`;
  return [
    pc.bold(`${name}  ${engine === '' ? 'engine not known' : engine}, ${where}`),
    ...(process === undefined ? [] : [field('process', describeProcess(process))]),
    ...(log === undefined ? [] : [field('log', describeLog(log))]),
    field('health', health === undefined ? without : describeHealth(health)),
    ...describeCapacity(capacity),
  ];
}

function renderJudged(server: ProbedServer): string[] {
  const { verdict, activity, hypotheses, errors, policy, unseen } = server;
  const { state, phase, progress, cause, title, evidence, remedy, notes } = verdict;
  const colour = WELL.has(state) ? pc.green : state === 'initializing' || state === 'degraded' ? pc.yellow : pc.red;
  const where = phase === '' || phase === 'serving' ? '' : `, in ${phase}`;
  const far = progress === undefined ? '' : ` (${progress.done} of ${progress.of})`;
  // Nothing was seen of it: what it could be, and whether a rule is broken, is nobody's question.
  if (state === 'absent' && server.process === undefined && server.log === undefined && policy.every(({ kept }) => !kept))
    return [...renderSeen(server), field('state', colour(state)), ...unseen.map((one) => field('not seen', one))];
  return [
    ...renderSeen(server),
    field('state', `${colour(state)}${where}${far}`),
    ...(cause === 'none' ? [] : [field('cause', `${cause}: ${title} (confidence ${verdict.confidence})`)]),
    ...evidence.slice(0, 3).map(renderLine),
    ...errors
      .filter(({ line }) => !evidence.some((one) => one.line === line))
      .slice(-4)
      .map(renderLine),
    field('activity', `${activity.kind}: ${activity.says.join('; ')}`),
    ...policy.map(({ rule, kept, broken, because, decided }) =>
      field(
        'policy',
        kept ? `${rule}: kept, ${because}` : `${rule}: ${broken ? pc.red('BROKEN') : 'not kept'}, ${because} (${decided})`,
      ),
    ),
    ...hypotheses.flatMap(({ name, for: reasons, against }) => [
      reasons.length === 0 ? `${WORDS[name]} nothing speaks for it` : WORDS[name],
      ...reasons.map((reason) => field('', `+ ${reason}`)),
      ...against.map((reason) => field('', pc.dim(`- ${reason}`))),
    ]),
    ...(cause === 'none'
      ? []
      : [
          field('do', remedy.text),
          ...(remedy.flag === '' ? [] : [field('', pc.bold(`${remedy.flag} ${remedy.value}`.trimEnd()))]),
        ]),
    ...notes.filter((note) => !note.startsWith('Silence was not judged')).map((note) => field('note', note)),
    ...(server.verified?.warnings ?? []).map((warning) => field('warning', warning)),
    ...unseen.map((one) => field('not seen', one)),
  ];
}

function renderLine({ line, text }: { readonly line: number; readonly text: string }): string {
  return field('', `${pc.dim(`line ${line}`)}  ${text.trim().slice(0, LINE_SHOWN)}`);
}

function renderMachine({ name, gpus, kernel, unseen, because }: ProbedMachine): string[] {
  return [
    ...gpus.map((line) => field(name, line)),
    ...kernel.map((line) => field('kernel', line.slice(0, LINE_SHOWN))),
    ...(because === '' ? [] : [field('not seen', `${name}: ${because}`)]),
    ...unseen.map((line) => field('not seen', line)),
  ];
}

function describeProcess(process: NonNullable<EarlyServer['process']>): string {
  const { pid, presence, ageMs, exitStatus, residentBytes, children, container, memory, end } = process;
  const left = exitStatus === undefined ? '' : `, exit status ${exitStatus}`;
  if (end !== '') return end;
  if (presence === 'gone') return `pid ${pid} is gone${left}`;
  if (pid === 0) return `in ${container}, which runs; not to be seen from here`;
  const { usedBytes, limitBytes, oomKills = 0 } = memory;
  return [
    `pid ${pid}${presence === 'zombie' ? ', a zombie' : ''}${left}`,
    ...(ageMs === undefined ? [] : [`started ${formatDuration(ageMs)} ago`]),
    `${children} ${children === 1 ? 'process' : 'processes'} below it`,
    ...(residentBytes === undefined ? [] : [`${formatBytes(residentBytes)} resident`]),
    ...(container === '' ? [] : [`in ${container}`]),
    ...(usedBytes === undefined || limitBytes === undefined
      ? []
      : [`its memory group uses ${formatBytes(usedBytes)} of ${formatBytes(limitBytes)}`]),
    ...(oomKills === 0 ? [] : [`oom_kill ${oomKills}`]),
  ].join(', ');
}

function describeLog({ path, bytes, read, quietMs }: NonNullable<EarlyServer['log']>): string {
  const part = read < bytes ? `read ${formatBytes(read)} of ${formatBytes(bytes)}` : formatBytes(bytes);
  return `${path}, ${part}${quietMs === undefined ? '' : `, written to ${formatDuration(quietMs)} ago`}`;
}

function describeHealth({ answer, because }: ProbedHealth): string {
  switch (answer.kind) {
    case 'refused':
      return because === '' ? 'refused: nothing listens there' : `refused: no answer of HTTP came (${because})`;
    case 'timeout':
      return `no answer in ${formatDuration(answer.afterMs)}${because === '' ? '' : ` (${because})`}`;
    case 'http':
      return `${answer.status} after ${formatDuration(answer.afterMs)}`;
  }
}

function describeCapacity({
  poolTokens,
  contextTokens,
  maxRunningRequests,
  freeAfterGraphsGiB,
  kvType,
  differs,
}: ProbedCapacity): string[] {
  const parts = [
    ...(poolTokens === 0 ? [] : [`${formatCount(poolTokens)} tokens`]),
    ...(freeAfterGraphsGiB === undefined ? [] : [`${freeAfterGraphsGiB} GiB left on each GPU after graph capture`]),
    ...(contextTokens === 0 ? [] : [`${formatCount(contextTokens)} tokens a request`]),
    ...(maxRunningRequests === 0 ? [] : [`${formatCount(maxRunningRequests)} requests at once`]),
  ];
  return [
    ...(parts.length === 0 ? [] : [field('holds', parts.join(', '))]),
    ...(kvType.how === 'unknown' ? [] : [field('KV cache', `${kvType.type} (${kvType.because})`)]),
    ...(kvType.contradicts === undefined ? [] : [field('', `against it: ${kvType.contradicts}`)]),
    ...differs.map((one) => field('differs', one)),
  ];
}

function field(name: string, text: string): string {
  const lines = text.replaceAll('\n', `\n${' '.repeat(WIDTH)}`);
  return name.length < WIDTH ? `${name.padEnd(WIDTH)}${lines}` : `${name} ${lines}`;
}

/** Readings of a night at work stay in the log. */
const SAMPLES_TOLD = 50;

/** The document of `--json`: `servers`, and where one was probed its keys too, those of `diagnose` first. */
export function probeData({ taken, servers, machines, isWell, refusal, tookMs }: ProbeReport): unknown {
  const all = servers.map(serverData);
  const [only] = all;
  const refused = refusal === undefined ? null : { code: refusal.code, message: refusal.message, ...refusal.detail };
  const report = { taken, isWell, refused, tookMs: Math.round(tookMs), machines, servers: all };
  return all.length === 1 ? { ...only, ...report } : report;
}

function serverData(server: ProbedServer): object {
  const { verdict, health, activity, policy, hypotheses, unseen, ...rest } = server;
  const { phase, hypotheses: _byLog, facts, ...judged } = verdict;
  return {
    ...judged,
    phase: phase === '' ? null : phase,
    facts: { ...facts, samples: facts.samples.slice(-SAMPLES_TOLD) },
    hypotheses,
    health: health === undefined ? null : healthData(health),
    ...{ activity, policy: policy.map(({ decided: _decided, ...one }) => one), unseen },
    ...rest,
    verified: rest.verified ?? null,
  };
}

function healthData({ answer, because }: ProbedHealth): object {
  return {
    kind: answer.kind,
    status: answer.kind === 'http' ? answer.status : null,
    afterMs: Math.round(answer.afterMs),
    because,
  };
}
