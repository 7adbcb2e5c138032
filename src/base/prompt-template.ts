/** What it takes to render a prompt here as its server would; `tokens/prompt-template.ts` makes it from a model's files. */

export interface PromptParts {
  /** As a chat is sent; the arguments of calls are objects, as templates expect them. */
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  /** As the server gives them to its template; empty = none. */
  readonly tools: readonly unknown[];
  readonly kwargs: Readonly<Record<string, unknown>>;
}

/** `refused`: the template does not take these messages, in its own words. */
export type Rendered = { readonly text: string } | { readonly refused: string };

export interface PromptTemplate {
  render(parts: PromptParts): Rendered;
  /**
   * The tokenizer is Python code of the model's repository (`auto_map`, no `tokenizer.json`): it may prepare what the
   * template sees of tools, which cannot be redone here.
   */
  readonly isPreparedInPython: boolean;
}

/** The template, or why there is none. */
export type FoundTemplate =
  | { readonly kind: 'found'; readonly template: PromptTemplate }
  | { readonly kind: 'none'; readonly because: string };

export const NO_TEMPLATE: FoundTemplate = { kind: 'none', because: 'the chat template of its model is not at hand' };
