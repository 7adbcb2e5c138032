/**
 * Rendering of a chat template: messages in, the text that the model is to continue out. Pure.
 *
 * The template is Jinja as models ship it (`tokenizer.chat_template` of a GGUF, `chat_template` of a tokenizer
 * configuration), read with trim_blocks and lstrip_blocks like transformers does. A template that does not parse, or that
 * refuses the messages (`raise_exception`), throws `ChatTemplateError`: for an engine that is a 400, for a run a bad row.
 */
import { Template } from '@huggingface/jinja';

export interface ChatTemplateInput {
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  /** Text of the beginning-of-sequence token, '' where the model has none. */
  readonly bosToken: string;
  readonly eosToken: string;
  /** true: end with what opens the assistant's answer. */
  readonly addGenerationPrompt: boolean;
  /** Extra variables (`enable_thinking` …). They cannot replace the messages or the tokens. */
  readonly kwargs: Readonly<Record<string, unknown>>;
}

export class ChatTemplateError extends Error {
  constructor(message: string, cause: unknown) {
    super(message, { cause });
    this.name = 'ChatTemplateError';
  }
}

export type ChatTemplate = (input: ChatTemplateInput) => string;

/** Parses once; the function that comes back renders as often as wanted. */
export function compileChatTemplate(source: string): ChatTemplate {
  const template = orTemplateError('The chat template cannot be parsed', () => new Template(source));
  return (input) =>
    orTemplateError('The chat template refuses these messages', () =>
      template.render({
        ...input.kwargs,
        messages: input.messages.map((message) => ({ ...message })),
        bos_token: input.bosToken,
        eos_token: input.eosToken,
        add_generation_prompt: input.addGenerationPrompt,
      }),
    );
}

function orTemplateError<T>(what: string, action: () => T): T {
  try {
    return action();
  } catch (thrown) {
    throw new ChatTemplateError(`${what}: ${thrown instanceof Error ? thrown.message : String(thrown)}`, thrown);
  }
}
