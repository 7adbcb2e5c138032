/** What a person should know of a server that came up: a sentence each, with the numbers and what to change. Pure. */
import { formatCount } from '../../base/units.ts';
import { findFlag, SGLANG_LINE } from '../../engine/launching.ts';
import type { VerifiedFigures, VerifyInput } from './verified-launch.ts';

export function warnOfLaunch(input: VerifyInput, figures: VerifiedFigures): string[] {
  return [
    ...warnOfKvType(figures),
    ...warnOfPool(input, figures),
    ...warnOfHeadroom(input, figures),
    ...warnOfPrediction(input, figures),
    ...figures.rewritten.map(
      ({ name, sent, taken }) => `The engine rewrote --${name}: ${sent} was sent, and it works with ${taken}.`,
    ),
    ...warnOfRunning(input, figures),
  ];
}

function warnOfKvType({ kvType: { bits, contradicts, because } }: VerifiedFigures): string[] {
  if (bits === undefined) return [`Nothing tells the type of the KV cache: ${because}.`];
  if (contradicts === undefined) return [];
  return [`Sources differ about the KV cache: ${contradicts}. It counts as ${bits} bits: ${because}.`];
}

/** Fewer tokens than SGLang puts in one prefill pass by default hold a handful of requests: what a fraction set by itself leaves of a card full of weights. */
const TINY_POOL = 16_384;

function warnOfPool({ engine, flags }: VerifyInput, { poolTokens, contextTokens }: VerifiedFigures): string[] {
  if (poolTokens === 0) return ['The server does not say how many tokens its KV pool holds.'];
  const warnings: string[] = [];
  if (poolTokens < TINY_POOL) {
    const isAuto =
      engine === 'sglang' && findFlag(flags, ['mem-fraction-static', 'mem-frac', 'mem-fraction'], SGLANG_LINE) === undefined;
    const remedy = isAuto
      ? 'SGLang chose the memory fraction itself; set mem-fraction-static (aerie plan says which value fits).'
      : 'Set a higher memory fraction, or more GPUs (aerie plan says what they would hold).';
    warnings.push(`The KV pool holds ${formatCount(poolTokens)} tokens, which is a few requests. ${remedy}`);
  }
  if (contextTokens > poolTokens) {
    // SGLang caps a request at min(context, pool) − 6 (engine 0.5.x: `max_req_input_len`); vLLM refuses to start.
    warnings.push(
      `The KV pool (${formatCount(poolTokens)} tokens) is smaller than the context (${formatCount(contextTokens)}): ` +
        'no request can use the whole context, and longer ones are refused. Raise the pool, or lower the context length.',
    );
  }
  return warnings;
}

/** Where no plan says what a prefill chunk needs: about 1.5 GiB for a large mixture of experts at chunk 8,192. */
const LITTLE_GIB = 1.5;

function warnOfHeadroom({ engine, plan }: VerifyInput, { freeAfterGraphsGiB: free }: VerifiedFigures): string[] {
  // vLLM measures its largest step and keeps its memory inside the budget.
  if (free === undefined || engine === 'vllm') return [];
  const need = plan?.prediction.prefillNeedGiB;
  const remedy = 'Lower mem-fraction-static, chunked-prefill-size or max-running-requests.';
  const left = `${free.toFixed(2)} GiB are left on each GPU after graph capture`;
  if (need === undefined) return free < LITTLE_GIB ? [`${left}: a large prefill may run out of memory. ${remedy}`] : [];
  const needs = `one full prefill chunk needs ${need.low.toFixed(2)} to ${need.high.toFixed(2)} GiB`;
  if (free < need.low) return [`${left}, and ${needs}: the first large prompt ends this server. ${remedy}`];
  return free < need.high ? [`${left}, and ${needs}: the largest prompts may not fit. ${remedy}`] : [];
}

/** Which figure of the log differs from the plan's: that is what changed. */
function warnOfPrediction({ log, plan }: VerifyInput, { predicted }: VerifiedFigures): string[] {
  if (predicted === undefined || predicted.insideRange || plan === undefined) return [];
  const { prediction } = plan;
  const pairs: readonly (readonly [string, number | undefined, number])[] = [
    ['weights', log?.weightsGiBPerGpu, prediction.weightsGiBPerGpu],
    ['free before the weights', log?.freeBeforeLoadGiB, prediction.freeBeforeLoadGiB],
  ];
  const terms = pairs.flatMap(([name, is, was]) =>
    is === undefined ? [] : [`${name} ${is.toFixed(2)} GiB a GPU (predicted ${was.toFixed(2)})`],
  );
  const { poolTokens, range, differencePercent } = predicted;
  const sign = differencePercent > 0 ? 'more' : 'fewer';
  return [
    `The pool holds ${Math.abs(differencePercent).toFixed(1)} % ${sign} tokens than predicted (${formatCount(poolTokens)}, ` +
      `from ${formatCount(range.low)} to ${formatCount(range.high)})${terms.length === 0 ? '' : `: ${terms.join(', ')}`}.`,
  ];
}

function warnOfRunning({ plan, engine }: VerifyInput, { maxRunningRequests, rewritten }: VerifiedFigures): string[] {
  const asked = plan?.launch.maxRunningAsked ?? 0;
  if (asked === 0 || maxRunningRequests === 0 || maxRunningRequests >= asked || engine !== 'sglang') return [];
  if (rewritten.some(({ name }) => name.endsWith('max-running-requests'))) return [];
  const groups = plan?.launch.isDpAttention === true ? plan.launch.dp : 1;
  if (maxRunningRequests * groups >= asked) return [];
  return [
    `The engine works on ${maxRunningRequests} requests at once, fewer than the ${asked} asked for: its pool or its state cache is the limit.`,
  ];
}
