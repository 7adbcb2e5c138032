/**
 * Rules that need two keys of the run file at once. Pure, and over the file as written, so that they are reported
 * together with everything else that is wrong; a value of the wrong kind is the schema's to report and is passed over.
 */
import { checkClientCommand } from './check-client-command.ts';
import { checkContinue } from './check-continue.ts';
import { checkLaunchFlags } from './check-launch-flags.ts';
import { checkMachine } from './check-machine.ts';
import { checkNodes } from './check-nodes.ts';
import { unknownKey, valueAt } from './explain-issue.ts';
import type { Path, Problem } from './problem.ts';
import { quoteText } from './quote.ts';
import { knownKeys } from './run-json-schema.ts';

/** Fields of a request that Aerie writes itself, and where each is set instead. */
const OWNED_FIELDS: Readonly<Record<string, string>> = {
  messages: 'each prompt gives its own',
  seed: 'write sampling.seed; each turn gets its own seed from it',
  model: 'write model at the left margin',
  stream: 'Aerie asks for whole answers',
  stream_options: 'Aerie asks for whole answers',
  max_tokens: 'write sampling.max-tokens',
  max_completion_tokens: 'write sampling.max-tokens',
  temperature: 'write sampling.temperature',
  top_p: 'write sampling.top-p',
  top_k: 'write sampling.top-k',
  stop: 'write sampling.stop',
  chat_template_kwargs: 'write sampling.chat-template-kwargs',
  return_token_ids: 'Aerie asks for the ids where the engine has them',
  return_prompt_token_ids: 'Aerie asks for the ids where the engine has them',
  return_meta_info: 'Aerie asks for the ids where the engine has them',
  n: 'each turn has one answer',
};

export function crossCheck(file: unknown): Problem[] {
  const servers = listAt(file, ['servers']);
  return [
    ...checkNames(file, 'partitions'),
    ...checkNames(file, 'servers'),
    ...servers.flatMap((_, i) => checkServer(file, ['servers', i])),
    ...servers.flatMap((_, i) => checkLaunchFlags(file, ['servers', i])),
    ...servers.flatMap((_, i) => checkClientCommand(file, ['servers', i])),
    ...servers.flatMap((_, i) => checkNodes(file, ['servers', i])),
    ...checkModel(file, servers),
    ...checkModelPaths(file, servers),
    ...listAt(file, ['policy']).flatMap((_, i) => checkRule(file, ['policy', i])),
    ...samplingPlaces(file).flatMap((path) => checkSampling(file, path, servers)),
    ...checkContinue(file, servers),
  ];
}

const RULE_VERBS = ['forbid', 'require', 'min', 'max'] as const;

/** A rule is one sentence with one reason: one verb, and something that it is about. */
function checkRule(file: unknown, path: Path): Problem[] {
  const rule = valueAt(file, path);
  const known: readonly string[] = [...RULE_VERBS, 'because', 'by'];
  // What is no map, or has a key that is misspelt, is the schema's to report.
  if (typeof rule !== 'object' || rule === null || Array.isArray(rule) || Object.keys(rule).some((key) => !known.includes(key)))
    return [];
  const written = RULE_VERBS.filter((verb) => valueAt(file, [...path, verb]) !== undefined);
  const [only] = written;
  if (written.length !== 1 || only === undefined) {
    const has = written.length === 0 ? 'none of them' : written.join(' and ');
    const message = `must have exactly one of ${RULE_VERBS.join(', ')}; it has ${has}, so write a rule for each`;
    return [{ path, at: 'value', message, missing: [...path, 'forbid'] }];
  }
  const part = valueAt(file, [...path, only]);
  const isEmpty = typeof part === 'object' && part !== null && Object.keys(part).length === 0;
  return isEmpty
    ? [{ path: [...path, only], at: 'value', message: 'is empty; write what the rule is about, as kv-cache: below-16-bit' }]
    : [];
}

/** `sampling:` of the run, and of each partition. */
function samplingPlaces(file: unknown): Path[] {
  return [['sampling'], ...listAt(file, ['partitions']).map((_, i) => ['partitions', i, 'sampling'])];
}

function checkSampling(file: unknown, path: Path, servers: readonly unknown[]): Problem[] {
  return [
    ...checkLengths(file, [...path, 'max-tokens'], servers),
    ...checkThinking(file, path),
    ...checkExtraBody(file, [...path, 'extra-body']),
    ...['extra-body', 'chat-template-kwargs'].flatMap((key) => findInexact(valueAt(file, [...path, key]), [...path, key])),
  ];
}

/** Paths whose own mistakes say nothing beyond a cross-check: flags that may not be there at all. */
export function silencedBy(problems: readonly Problem[]): Path[] {
  return problems.filter((problem) => problem.at === 'key' && problem.path.at(-1) === 'flags').map((problem) => problem.path);
}

/** How a launch and its children are known again. */
const OWNED_ENV: readonly string[] = ['AERIE_LAUNCH'];
const LAUNCH_KEYS = ['setup', 'env', 'command', 'workdir'] as const;
const LAUNCH_ONLY = 'is for a server that Aerie launches; this one is there already, so leave it out';

function checkServer(file: unknown, path: Path): Problem[] {
  const has = (key: string) => valueAt(file, [...path, key]) !== undefined;
  const engine = valueAt(file, [...path, 'engine']);
  const problems: Problem[] = [];
  if (engine === 'openai' && !has('attach')) {
    const message = 'is openai, which needs attach: http://HOST:PORT beside it; it is always a server that is already there';
    problems.push({ path: [...path, 'engine'], at: 'value', message, missing: [...path, 'attach'] });
  }
  if (engine === 'openai' || has('attach')) {
    const flags = 'are for a server that Aerie launches; this one has the flags it was started with, so leave them out';
    const port = 'is for a server that Aerie launches; the port of this one is part of attach';
    if (has('flags')) problems.push({ path: [...path, 'flags'], at: 'key', message: flags });
    if (has('port')) problems.push({ path: [...path, 'port'], at: 'key', message: port });
    for (const key of LAUNCH_KEYS.filter(has)) problems.push({ path: [...path, key], at: 'key', message: LAUNCH_ONLY });
  } else if (has('api-key')) {
    const message = 'is for a server that is already there (attach); one that Aerie launches needs no key';
    problems.push({ path: [...path, 'api-key'], at: 'key', message, missing: [...path, 'attach'] });
  }
  if (has('env')) problems.push(...checkEnv(file, [...path, 'env']));
  problems.push(...checkMachine(file, path));
  return isForeignEngine(engine) ? problems : [...problems, ...checkEmbedded(file, path)];
}

function checkEnv(file: unknown, path: Path): Problem[] {
  const env = valueAt(file, path);
  const isMap = typeof env === 'object' && env !== null && !Array.isArray(env);
  const owned = isMap ? Object.keys(env).filter((name) => OWNED_ENV.includes(name)) : [];
  return owned.map((name): Problem => ({ path: [...path, name], at: 'key', message: 'is a variable that Aerie sets itself' }));
}

/** SGLang and vLLM have hundreds of flags, and `aerie plan` knows which; the embedded engine has four. */
function checkEmbedded(file: unknown, path: Path): Problem[] {
  const flags = valueAt(file, [...path, 'flags']);
  const isMap = typeof flags === 'object' && flags !== null && !Array.isArray(flags);
  const known = knownKeys([...path, 'flags']);
  const isLaunched = valueAt(file, [...path, 'attach']) === undefined;
  const unknown = isMap && isLaunched ? Object.keys(flags).filter((key) => !known.includes(key)) : [];
  const planned = ['gpu', 'engine-version', 'log', ...(isLaunched ? [...LAUNCH_KEYS, 'machine'] : [])].filter(
    (key) => valueAt(file, [...path, key]) !== undefined,
  );
  const message = 'is for sglang and vllm; the embedded engine comes with Aerie and works on the CPU';
  return [
    ...unknown.map((key) => unknownKey([...path, 'flags'], key)),
    ...planned.map((key): Problem => ({ path: [...path, key], at: 'key', message })),
  ];
}

/** One that only another program can be: Aerie attaches to it. */
function isForeignEngine(engine: unknown): boolean {
  return engine === 'vllm' || engine === 'sglang' || engine === 'openai';
}

/** Names become folders, and some systems take B1 and b1 for one folder. Default names of servers count too. */
function checkNames(file: unknown, list: 'partitions' | 'servers'): Problem[] {
  const first = new Map<string, number>();
  return listAt(file, [list]).flatMap((_, i): Problem[] => {
    const written = valueAt(file, [list, i, 'name']);
    const name = list === 'servers' ? (written ?? `${String(valueAt(file, [list, i, 'engine']))}-${i}`) : written;
    if (typeof name !== 'string') return [];
    const before = first.get(name.toLowerCase());
    if (before === undefined) first.set(name.toLowerCase(), i);
    if (before === undefined) return [];
    const message = `is ${quoteText(name)}, which ${list}[${before}] is called already (capitals do not count); each needs its own name`;
    return [{ path: [list, i, 'name'], at: 'value', message }];
  });
}

function checkLengths(file: unknown, path: Path, servers: readonly unknown[]): Problem[] {
  const most = valueAt(file, path);
  const contexts = servers.map((_, i) => valueAt(file, ['servers', i, 'flags', 'context']));
  const place = contexts.findIndex((context) => typeof context === 'number' && typeof most === 'number' && most >= context);
  if (place === -1) return [];
  const room = `servers[${place}].flags.context is ${String(contexts[place])} tokens for prompt and answer together`;
  return [{ path, at: 'value', message: `is ${String(most)}, but ${room}; it must be smaller than that` }];
}

function checkModel(file: unknown, servers: readonly unknown[]): Problem[] {
  const foreign = servers.map((_, i) => valueAt(file, ['servers', i, 'engine'])).find(isForeignEngine);
  if (valueAt(file, ['model']) !== 'default' || foreign === undefined) return [];
  const message = `is default, the small model of the embedded engine; write the name under which the ${String(foreign)} server serves its model`;
  return [{ path: ['model'], at: 'value', message }];
}

/** Where Aerie starts the server its words are quoted, so no shell reads the ~, and the engines take it as it stands. */
function checkModelPaths(file: unknown, servers: readonly unknown[]): Problem[] {
  const launched = servers.flatMap((_, i) => (valueAt(file, ['servers', i, 'attach']) === undefined ? [i] : []));
  const places: Path[] = launched.flatMap((i) => [
    ['servers', i, 'flags', 'model-path'],
    ['servers', i, 'flags', 'model'],
  ]);
  if (launched.length > 0) places.unshift(['model']);
  const message = 'begins with ~, which only a shell understands; write the path out, as it is on the machine of the server';
  return places
    .filter((path) => /^~(\w|\/|$)/.test(String(valueAt(file, path) ?? '')))
    .map((path): Problem => ({ path, at: 'value', message }));
}

function checkThinking(file: unknown, sampling: Path): Problem[] {
  const path = [...sampling, 'chat-template-kwargs', 'enable_thinking'];
  if (valueAt(file, [...sampling, 'thinking']) === undefined || valueAt(file, path) === undefined) return [];
  return [{ path, at: 'key', message: 'is said already by sampling.thinking; keep one of them' }];
}

function checkExtraBody(file: unknown, path: Path): Problem[] {
  const body = valueAt(file, path);
  if (typeof body !== 'object' || body === null) return [];
  return Object.keys(body).flatMap((key): Problem[] => {
    const instead = Object.hasOwn(OWNED_FIELDS, key) ? OWNED_FIELDS[key] : undefined;
    return instead === undefined
      ? []
      : [{ path: [...path, key], at: 'key', message: `is a field that Aerie sets itself: ${instead}` }];
  });
}

/** JSON would send these numbers as something else than what is written. */
function findInexact(value: unknown, path: Path): Problem[] {
  if (typeof value === 'number') {
    const isExact = Number.isFinite(value) && (!Number.isInteger(value) || Number.isSafeInteger(value));
    return isExact ? [] : [{ path, at: 'value', message: 'is a number that a request cannot carry exactly' }];
  }
  if (typeof value !== 'object' || value === null) return [];
  const isList = Array.isArray(value);
  return Object.entries(value).flatMap(([key, below]) => findInexact(below, [...path, isList ? Number(key) : key]));
}

function listAt(file: unknown, path: Path): readonly unknown[] {
  const value = valueAt(file, path);
  return Array.isArray(value) ? value : [];
}
