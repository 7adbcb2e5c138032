/**
 * What stands around a log line: time by the lookalike's clock, rank or process, level and place, as each engine and version has them. Pure.
 * Formats: docs/lookalike.md, and `engine/log-envelope.ts`, which reads them.
 */
import type { EngineLaunch } from '../../../capacity/engine-launch.ts';
import { isAtLeast } from '../../../engine/version.ts';

export interface Line {
  readonly text: string;
  /** Left out: the main process. */
  readonly rank?: number;
  /** vLLM's `[file.py:123]`; its engine core where it is not a worker that speaks. */
  readonly place?: string;
  readonly isCore?: boolean;
  readonly level?: 'INFO' | 'WARNING' | 'ERROR';
}

/** Pids by rank; the main process and the engine core have their own. */
export interface Pids {
  readonly main: number;
  readonly ranks: readonly number[];
}

/** Ranks of one server, as many processes of it hold a GPU. */
export function countRanks({ tp, pp, dp, isDpAttention }: EngineLaunch): number {
  return tp * pp * (isDpAttention ? 1 : dp);
}

export function wrapLine(launch: EngineLaunch, at: Date, line: Line, pids: Pids): string {
  return launch.engine === 'sglang' ? wrapSglang(launch, at, line) : wrapVllm(launch, at, line, pids);
}

function wrapSglang(launch: EngineLaunch, at: Date, { text, rank }: Line): string {
  const who = rank === undefined ? '' : rankTokens(launch, rank);
  return `[${dateOf(at)} ${timeOf(at)}${who}] ${text}`;
}

/** ` DP0 TP0`: each only where there is more than one. */
export function rankTokens(launch: EngineLaunch, rank: number): string {
  const { tp, pp, dp, ep, isDpAttention, attentionTp } = launch;
  const token = (name: string, size: number, at: number) => (size > 1 ? ` ${name}${at}` : '');
  const inStage = rank % tp;
  const group = isDpAttention ? Math.floor(inStage / attentionTp) : Math.floor(rank / (tp * pp));
  const expert = Math.floor((inStage * ep) / tp);
  return `${token('DP', dp, group)}${token('PP', pp, Math.floor(rank / tp) % pp)}${token('TP', tp, inStage)}${token('EP', ep, expert)}`;
}

function wrapVllm(launch: EngineLaunch, at: Date, line: Line, pids: Pids): string {
  const who = processOf(launch, line, pids);
  // uvicorn writes past vLLM's logger.
  if (/^INFO: {2,}/.test(line.text)) return `${who}${line.text}`;
  const place = line.place ?? 'loggers.py:248';
  return `${who}${line.level ?? 'INFO'} ${shortTime(at)} [${place}] ${line.text}`;
}

export function processOf({ version, tp, pp }: EngineLaunch, { rank, isCore }: Line, pids: Pids): string {
  const from = (...least: [number, number, number]) => isAtLeast(version, least) ?? true;
  if (rank !== undefined && tp * pp > 1) {
    const pid = pids.ranks[rank] ?? pids.main;
    return from(0, 11, 0) ? `(Worker_TP${rank} pid=${pid}) ` : `(VllmWorker rank=${rank} pid=${pid}) `;
  }
  if (rank !== undefined || isCore === true) {
    const name = from(0, 17, 0) ? 'EngineCore' : from(0, 11, 0) ? 'EngineCore_DP0' : 'EngineCore_0';
    return `(${name} pid=${pids.ranks[0] ?? pids.main}) `;
  }
  return `(APIServer pid=${pids.main}) `;
}

const two = (value: number) => String(value).padStart(2, '0');

function dateOf(at: Date): string {
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
}

/** vLLM writes no year. */
export function shortTime(at: Date): string {
  return `${dateOf(at).slice(5)} ${timeOf(at)}`;
}

function timeOf(at: Date): string {
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** tqdm's bar without the `\r` that writes it over the last one. */
export function renderBar(name: string, done: number, of: number, seconds: number, isDrawn = true): string {
  const share = Math.floor((100 * done) / of);
  const pace =
    done === 0 || seconds <= 0
      ? '?it/s'
      : seconds > done
        ? `${(seconds / done).toFixed(2)}s/it`
        : `${(done / seconds).toFixed(2)}it/s`;
  const left = done === 0 ? '?' : clockOf((seconds / done) * (of - done));
  const filled = Math.round((10 * done) / of);
  const drawn = isDrawn ? `|${'█'.repeat(filled)}${' '.repeat(10 - filled)}|` : 'Completed |';
  return `${name}: ${String(share).padStart(3)}%${isDrawn ? '' : ' '}${drawn} ${done}/${of} [${clockOf(seconds)}<${left}, ${pace.padStart(9)}]`;
}

function clockOf(seconds: number): string {
  const whole = Math.round(seconds);
  const hours = Math.floor(whole / 3600);
  return `${hours > 0 ? `${hours}:` : ''}${two(Math.floor(whole / 60) % 60)}:${two(whole % 60)}`;
}
