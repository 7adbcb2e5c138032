/**
 * Flags of a launch that Aerie writes itself, where the run file writes them too and means something else. Pure, over the file as written.
 * A launch has one model, one place and one name, and requests go there; a flag that says otherwise would be found out after the whole load.
 */
import { valueAt } from './explain-issue.ts';
import type { Path, Problem } from './problem.ts';
import { quoteText } from './quote.ts';

/** Aerie speaks to its own launches over the loopback; the wildcards listen there too. */
const REACHED = ['127.0.0.1', 'localhost', '0.0.0.0', '::', '::1'];

export function checkLaunchFlags(file: unknown, server: Path): Problem[] {
  const at = (key: string) => valueAt(file, [...server, key]);
  const [engine, flags] = [at('engine'), at('flags')];
  const isLaunch = (engine === 'sglang' || engine === 'vllm') && at('attach') === undefined;
  if (!isLaunch || typeof flags !== 'object' || flags === null || Array.isArray(flags)) return [];
  const written = new Map(Object.entries(flags).map(([key, value]) => [plainOf(key), { key, value: value as unknown }]));
  const problem = (key: string, place: 'key' | 'value', message: string): Problem => ({
    path: [...server, 'flags', key],
    at: place,
    message,
  });
  return [
    ...checkPort(written, at('port'), problem),
    ...checkHost(written, problem),
    ...checkNames(written, valueAt(file, ['model']), problem),
    ...checkKey(written, problem),
  ];
}

type Written = ReadonlyMap<string, { readonly key: string; readonly value: unknown }>;
type Report = (key: string, place: 'key' | 'value', message: string) => Problem;

function plainOf(key: string): string {
  return key.replace(/^-+/, '').replaceAll('_', '-');
}

function checkPort(written: Written, port: unknown, report: Report): Problem[] {
  const flag = written.get('port');
  // 0 = any free port.
  if (flag === undefined || port === undefined || port === 0 || Number(flag.value) === Number(port)) return [];
  return [
    report(flag.key, 'value', `is ${quoteScalar(flag.value)}, and port: beside flags: is ${quoteScalar(port)}; keep one of them`),
  ];
}

function checkHost(written: Written, report: Report): Problem[] {
  const flag = written.get('host');
  if (flag === undefined || REACHED.includes(String(flag.value))) return [];
  const message = `is ${quoteScalar(flag.value)}, where Aerie does not reach a server that it launches; leave it out, or write 0.0.0.0 to let others in`;
  return [report(flag.key, 'value', message)];
}

function checkNames(written: Written, model: unknown, report: Report): Problem[] {
  if (typeof model !== 'string') return [];
  const served = written.get('served-model-name');
  const names = (Array.isArray(served?.value) ? served.value : [served?.value]).map(String);
  if (served !== undefined && !names.includes(model)) {
    const message = `is ${quoteScalar(served.value)}, and requests ask for model: ${quoteText(model)}; write that name, or leave it out`;
    return [report(served.key, 'value', message)];
  }
  const flag = written.get('model-path') ?? written.get('model') ?? written.get('model-tag');
  if (flag === undefined || served !== undefined || trimmed(String(flag.value)) === trimmed(model)) return [];
  const message =
    `is ${quoteScalar(flag.value)}, and model: is ${quoteText(model)}; leave it out, ` +
    `or write served-model-name: ${model} beside it where that is the same model under another path`;
  return [report(flag.key, 'value', message)];
}

function checkKey(written: Written, report: Report): Problem[] {
  const flag = written.get('api-key');
  if (flag === undefined) return [];
  const message =
    'would stand on a command line for everybody to see; a server that Aerie launches is asked without a key, so leave it out';
  return [report(flag.key, 'key', message)];
}

function trimmed(path: string): string {
  return path.replace(/\/+$/, '');
}

/** A value of the wrong kind is the schema's to report. */
function quoteScalar(value: unknown): string {
  return typeof value === 'number' ? String(value) : quoteText(String(value));
}
