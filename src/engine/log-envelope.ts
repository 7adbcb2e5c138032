/**
 * What stands around a log message: colours, the prefixes of docker, kubectl, journald and srun, time, rank, level.
 * Pure. Promises: any text gives a result; the message is what the engine itself wrote.
 */

export interface LogLine {
  /** Time as written by the engine, else by what carried the log; '' where there is none. */
  readonly at: string;
  /** `TP0`, `DP1 TP3`, `Worker_TP0`, `EngineCore`; '' where the line does not say who wrote it. */
  readonly who: string;
  /** '' where the engine writes none: SGLang has no level after its logger is set up. */
  readonly level: string;
  readonly message: string;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters
const COLOURS = /\u001b\[[0-9;?]*[A-Za-z]|\u001b\][^\u0007]*\u0007/g;

/** ISO 8601, as docker and kubectl write with timestamps on; `2026-06-04 12:30:37.525 |` of log collectors too. */
const ISO_TIME = /^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)(?: \||\s)\s*/;
const JOURNAL = /^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]+ [^\s:[]+(?:\[\d+\])?: /;
/** `name  | ` of docker compose, `[pod/x/y] ` of kubectl --prefix, `3: ` of srun --label. */
const CARRIERS = [/^[\w.-]+\s+\| /, /^\[pod\/[^\]]+\] /, /^\d{1,4}: (?=\S)/];

const SGLANG = /^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?)((?: [A-Z_]+\d+)*)\] (?:(INFO|WARNING|ERROR) \S+:\d+: )?(.*)$/s;
const VLLM_PROCESS = /^\(([A-Za-z]\w*?)(?: (?:rank=\d+ )?pid=\d+|:\d+)?(?: ip=\S+)?\) (.*)$/s;
const VLLM = /^(DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d-\d\d \d\d:\d\d:\d\d) (?:\[?[\w./-]+\.py:\d+\]) ?(.*)$/s;

/** Splits at line feeds and at the carriage returns of progress bars. */
export function splitLog(text: string): string[] {
  return text.split(/\r\n|\n|\r/);
}

export function peelLine(raw: string): LogLine {
  let rest = raw.replace(COLOURS, '').trimEnd();
  let carried = '';
  // A line can have come through several carriers, such as journald around docker compose.
  for (let peeled = true; peeled; ) {
    peeled = false;
    const iso = ISO_TIME.exec(rest);
    if (iso !== null) {
      carried = iso[1] ?? '';
      rest = rest.slice(iso[0].length);
      peeled = true;
    }
    for (const carrier of [JOURNAL, ...CARRIERS]) {
      const found = carrier.exec(rest);
      if (found === null) continue;
      rest = rest.slice(found[0].length);
      peeled = true;
    }
  }
  return readEnvelope(rest, carried);
}

function readEnvelope(text: string, carried: string): LogLine {
  const sglang = SGLANG.exec(text);
  if (sglang !== null) {
    const [, at = '', ranks = '', level = '', message = ''] = sglang;
    return { at, who: ranks.trim(), level, message };
  }
  const process = VLLM_PROCESS.exec(text);
  const who = process?.[1] ?? '';
  const body = process?.[2] ?? text;
  const vllm = VLLM.exec(body);
  if (vllm !== null) return { at: vllm[2] ?? carried, who, level: vllm[1] ?? '', message: vllm[3] ?? '' };
  return { at: carried, who, level: '', message: body };
}
