/** A prompt that is rendered here and tokenised by its server, and what decides whether it can be. */
import type { Message } from '../base/conversation.ts';
import type { FoundTemplate } from '../base/prompt-template.ts';

/** A prompt as text, and as the server's own tokenizer has it. */
export interface RenderedPrompt {
  readonly text: string;
  readonly ids: readonly number[];
}

/** What of a prompt decides whether it can be rendered here. */
export interface PromptKind {
  readonly template: FoundTemplate;
  /** Definitions, calls or results of tools. */
  readonly hasTools: boolean;
  readonly extraBody: Readonly<Record<string, unknown>>;
}

/** Definitions, calls and results are all written by the part of a template that is about tools. */
export function hasTools({
  messages,
  tools,
}: {
  readonly messages: readonly Message[];
  readonly tools: readonly string[];
}): boolean {
  return tools.length > 0 || messages.some(({ role, toolCalls = [] }) => role === 'tool' || toolCalls.length > 0);
}
