/**
 * Prompts as ids, for servers that give none with a chat: rendered here, tokenised there, proved by sample.
 *
 *   not needed, or not possible ──▶ asked as a chat
 *   rendered → tokenised ──▶ sample ──▶ as long as the server's own? ──no──▶ all of this kind are asked as a chat from now on
 *                        └─▶ else, or yes ──▶ asked by ids
 *
 * The proof: the same turn as a chat that may answer one token; the server counts its own rendering of the prompt (`usage`),
 * and that count must be the number of our ids. Prompts with tools are another part of a template, and are proved apart.
 * The prompts looked at are those whose texts are looked at too: the first 32 of a server, then 1 in 256; and every one until
 * one has been proved. The ids of a record are in any case the ids that its server was given.
 */
import { type FoundTemplate, NO_TEMPLATE } from '../base/prompt-template.ts';
import { malformed, outcomeOfStatus } from '../engine/chat-completion.ts';
import type { Exactness, Outcome, TurnRequest } from '../engine/dialect.ts';
import { hasTools, type PromptKind, type RenderedPrompt } from '../engine/rendered-prompt.ts';
import { openTimeLimit } from '../host/time-limit.ts';
import type { Endpoint } from '../server/endpoint.ts';
import { readArrival, renderedTurnsOf, type SendOptions, sendTurn, shouldVerifyText } from './send-attempt.ts';

/** vLLM and SGLang answer one token at least. */
const ONE_TOKEN = 1;

/** The turn as it is to be sent, or what came of it before it could be. */
export type Prepared = { readonly turn: TurnRequest } | { readonly outcome: Outcome };

interface Proof {
  seen: number;
  proved: number;
  /** Why these prompts are asked as chats from now on; '' = they are not. */
  broken: string;
}

export class RenderedPrompts {
  readonly #proofs = new WeakMap<Endpoint, Map<boolean, Proof>>();

  /** What a record of these prompts would be, as far as is known now. */
  exactness(endpoint: Endpoint, prompt: Omit<PromptKind, 'template'>): Exactness {
    const { dialect, facts } = endpoint;
    const said = dialect.exactness(facts, { ...prompt, template: templateOf(endpoint) });
    const { broken } = this.#proofOf(endpoint, prompt.hasTools);
    if (!said.exact || broken === '') return said;
    return { exact: false, how: said.how, because: broken };
  }

  async prepare(endpoint: Endpoint, turn: TurnRequest, options: SendOptions): Promise<Prepared> {
    const { dialect, facts } = endpoint;
    const { renderedTurns } = dialect;
    if (renderedTurns === undefined || turn.soFar !== undefined || !renderedTurns.isNeeded(facts)) return { turn };
    const isWithTools = hasTools(turn);
    const proof = this.#proofOf(endpoint, isWithTools);
    const template = templateOf(endpoint);
    const whyNot = renderedTurns.whyNot({ template, hasTools: isWithTools, extraBody: turn.extraBody }, facts);
    if (whyNot !== '' || proof.broken !== '') return { turn };
    const rendered = renderedTurns.renderPrompt(turn, facts, template);
    // Its server refuses the prompt in its own words, or takes it: then its record says that there are no ids.
    if ('refused' in rendered) return { turn };
    const prompt = await tokenize(endpoint, rendered.text, turn, options);
    if (typeof prompt === 'string') {
      proof.broken = prompt;
      return { turn };
    }
    if ('kind' in prompt) return { outcome: prompt };
    if (shouldVerifyText(proof.seen++) || proof.proved === 0) {
      const own = await countAsChat(endpoint, turn, options);
      if (typeof own !== 'number') return { outcome: own };
      if (own !== prompt.ids.length) {
        proof.broken = brokenBecause(own, prompt.ids.length, isWithTools);
        return { turn };
      }
      proof.proved += 1;
    }
    return { turn: { ...turn, prompt } };
  }

  #proofOf(endpoint: Endpoint, isWithTools: boolean): Proof {
    const kinds = this.#proofs.get(endpoint) ?? new Map<boolean, Proof>();
    this.#proofs.set(endpoint, kinds);
    const proof = kinds.get(isWithTools) ?? { seen: 0, proved: 0, broken: '' };
    kinds.set(isWithTools, proof);
    return proof;
  }
}

function templateOf({ template }: Endpoint): FoundTemplate {
  return template ?? NO_TEMPLATE;
}

function brokenBecause(own: number, ours: number, isWithTools: boolean): string {
  const what = isWithTools ? 'a prompt with tools' : 'a prompt';
  return `its server renders ${what} otherwise than the chat template that is at hand: ${own} tokens there, ${ours} here`;
}

/** A sentence where the server keeps the path to itself: its chat may be open all the same. */
async function tokenize(
  { dialect, facts, turns }: Endpoint,
  text: string,
  turn: TurnRequest,
  { clock, abort, deadlineMs }: SendOptions,
): Promise<RenderedPrompt | Outcome | string> {
  const renderedTurns = renderedTurnsOf(dialect);
  // A server tokenises one text at a time, for all that are in flight: by the connections of the turns, in the time of a turn.
  const limit = openTimeLimit(clock, deadlineMs, abort);
  const reply = await turns.send(renderedTurns.tokenize(text, turn.model), limit.signal);
  limit.close();
  if (reply.kind === 'aborted')
    return limit.isUp
      ? { kind: 'lost', because: `/tokenize did not answer in ${Math.round(deadlineMs / 1000)} s`, deadline: false }
      : { kind: 'abandoned' };
  if (reply.kind === 'transport') return { kind: 'lost', because: `/tokenize: ${reply.code}`, deadline: false };
  const { status, retryAfterMs } = reply;
  const body = reply.body.take();
  if (CLOSED.has(status)) return `/tokenize answered ${status}: its server, or a proxy before it, does not have it for all`;
  if (status !== 200) return outcomeOfStatus({ status, body, retryAfterMs });
  const ids = renderedTurns.readTokens({ status, body }, facts);
  return ids === undefined ? malformed('/tokenize gave no list of ids, or not as many as it counts') : { text, ids };
}

/** Answers of a proxy that lets the chat through and not this. 401 is about the key, which the chat needs too. */
const CLOSED: ReadonlySet<number> = new Set([403, 404, 405]);

/** Tokens of the prompt as the server's own chat has it. */
async function countAsChat(endpoint: Endpoint, turn: TurnRequest, options: SendOptions): Promise<number | Outcome> {
  const asked = { ...turn, sampling: { ...turn.sampling, maxTokens: ONE_TOKEN } };
  const outcome = readArrival(await sendTurn(endpoint, asked, options), endpoint, asked);
  return outcome.kind === 'completed' ? outcome.reply.usage.prompt : outcome;
}
