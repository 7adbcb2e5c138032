/**
 * SGLang 0.5.4 – 0.5.12, which give no token ids with a chat. A turn takes two requests: the prompt is rendered here by the
 * model's own template, `/tokenize` makes ids of it (no special tokens are added: the template has written them), and
 * `/generate` takes these ids and gives the answer's. Reasoning and tool calls are read out of the raw text here. Pure.
 *
 * What the template is given is what SGLang gives it: messages with the arguments of calls as objects, and tools as its
 * request model writes them, with every field of it, bare before 0.5.9 and in their envelope from then on.
 */
import { answerFormatOf } from '../answer-format.ts';
import { outcomeOfStatus, renderMessage } from '../chat-completion.ts';
import { byGenerate, readGenerated } from '../continuations.ts';
import type { FactReply, MoreRequest, PreparedRequest, RenderedTurns, ServerFacts, TurnRequest } from '../dialect.ts';
import { idPathOf, SGLANG_WHOLE_TOOLS } from '../id-paths.ts';
import { countOf, listOf, looseObject, parseLoose } from '../loose-json.ts';
import { readRawAnswer } from '../raw-answer.ts';
import { hasTools } from '../rendered-prompt.ts';
import { isAtLeast } from '../version.ts';

const NO_PATH = ' (its token ids are had by this path; the server, or a proxy before it, has none)';
const TEMPLATE_KWARGS = 'chat_template_kwargs';

/** Fields of a chat that mean the same in `sampling_params`, by their name there. Others shape what the chat endpoint alone makes. */
const SAMPLING_PARAMS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    [
      ...['temperature', 'top_p', 'top_k', 'min_p', 'frequency_penalty', 'presence_penalty', 'repetition_penalty'],
      ...['stop', 'stop_token_ids', 'ignore_eos', 'logit_bias', 'regex', 'ebnf'],
    ].map((name) => [name, name]),
  ),
  min_tokens: 'min_new_tokens',
  seed: 'sampling_seed',
};

export const renderedTurns: RenderedTurns = {
  isNeeded: ({ engineVersion }) => idPathOf('sglang', engineVersion)?.kind === 'rendered',
  whyNot({ template, hasTools: isWithTools, extraBody }, facts) {
    if (template.kind === 'none') return template.because;
    const other = Object.keys(extraBody).find((name) => name !== TEMPLATE_KWARGS && !Object.hasOwn(SAMPLING_PARAMS, name));
    if (other !== undefined) return `extra-body has ${other}, which its chat endpoint alone understands`;
    const format = answerFormatOf(facts);
    if (typeof format === 'string') return format;
    if (!isWithTools) return '';
    if (template.template.isPreparedInPython)
      return 'the tokenizer of its model is Python code, which writes the definitions of tools before the template sees them';
    return format.calls === undefined ? `how ${writerOf(facts)} writes tool calls is not known here` : '';
  },
  renderPrompt({ messages, tools, templateKwargs, extraBody }, facts, template) {
    if (template.kind === 'none') return { refused: template.because };
    const sent = messages.map((message) => withArguments(renderMessage(message))).filter((message) => message !== undefined);
    if (sent.length < messages.length) return { refused: 'the arguments of a tool call are not JSON' };
    return template.template.render({
      messages: sent,
      tools: tools.map((tool) => toolAsGiven(tool, facts)),
      kwargs: looseObject(extraBody[TEMPLATE_KWARGS] ?? templateKwargs),
    });
  },
  tokenize(text, model) {
    return { method: 'POST', path: '/tokenize', body: JSON.stringify({ model, prompt: text, add_special_tokens: false }) };
  },
  readTokens,
  render(turn) {
    const extraBody = Object.fromEntries(
      Object.entries(turn.extraBody).flatMap(([name, value]) => {
        const param = SAMPLING_PARAMS[name];
        return param === undefined ? [] : [[param, value]];
      }),
    );
    // As its chat does: the marks of calls are special tokens of some models.
    const skips = hasTools(turn) ? { skip_special_tokens: false } : {};
    return byGenerate.render({ ...asMore(turn), extraBody: { ...extraBody, ...skips } });
  },
  read(reply, facts, turn) {
    const lengths = { prompt: turn.prompt.ids.length, answer: turn.sampling.maxTokens, context: facts.contextTokens };
    if (reply.status !== 200) return outcomeOfStatus(reply, lengths, NO_PATH);
    const outcome = readGenerated(reply, facts, asMore(turn));
    const format = answerFormatOf(facts);
    if (outcome.kind !== 'completed' || typeof format === 'string') return outcome;
    const read = readRawAnswer(outcome.reply.text, { format, prompt: turn.prompt.text, hasTools: turn.tools.length > 0 });
    const calls = read.toolCalls.length > 0 && outcome.reply.finish === 'stop';
    return { kind: 'completed', reply: { ...outcome.reply, ...read, ...(calls ? { finish: 'tool-calls' } : {}) } };
  },
};

function asMore(turn: PreparedRequest): MoreRequest {
  return { ...turn, soFar: turn.prompt.ids };
}

function writerOf({ model, toolCallParser }: ServerFacts): string {
  return toolCallParser === '' ? model || 'its model' : `--tool-call-parser ${toolCallParser}`;
}

/** Templates expect arguments as an object; undefined: they are none. */
function withArguments(message: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> | undefined {
  if (message['tool_calls'] === undefined) return message;
  const calls: unknown[] = [];
  for (const call of listOf(message['tool_calls']).map(looseObject)) {
    const called = looseObject(call['function']);
    try {
      calls.push({ ...call, function: { ...called, arguments: JSON.parse(String(called['arguments'])) as unknown } });
    } catch {
      return undefined;
    }
  }
  return { ...message, tool_calls: calls };
}

/** A definition as the request model of SGLang writes it: these fields in this order, whatever was sent. */
function toolAsGiven(tool: TurnRequest['tools'][number], { engineVersion }: ServerFacts): unknown {
  const sent = parseLoose(tool);
  const { description = null, name = null, parameters = null, strict = false } = looseObject(sent['function']);
  const bare = { description, name, parameters, strict };
  return isAtLeast(engineVersion, SGLANG_WHOLE_TOOLS) === true ? { type: sent['type'] ?? 'function', function: bare } : bare;
}

function readTokens({ status, body }: FactReply, { vocabularySize }: ServerFacts): readonly number[] | undefined {
  if (status !== 200) return undefined;
  const { tokens, count } = parseLoose(body);
  const ids = listOf(tokens);
  const limit = vocabularySize > 0 ? vocabularySize : 2 ** 31;
  const areIds = ids.length > 0 && ids.every((id) => countOf(id) >= 0 && Number(id) < limit);
  return areIds && count === ids.length ? (ids as readonly number[]) : undefined;
}
