/**
 * The chat template of a model → how prompts are rendered here as its server renders them: with what transformers gives a
 * template (messages, tools, the special tokens, the keywords of the request), ending in what opens the answer. Pure.
 *
 * The files are the model's own, and untrusted. A template that cannot be rendered the same here is none, with the reason.
 */
import type { FoundTemplate, PromptParts, Rendered } from '../base/prompt-template.ts';
import { type ChatTemplate, ChatTemplateError, compileChatTemplate } from './chat-template.ts';
import { templateSource, tokenText } from './decoder.ts';

export interface TemplateFiles {
  /** `tokenizer_config.json`. */
  readonly config: Readonly<Record<string, unknown>>;
  /** `chat_template.jinja`, which goes before the one in the configuration; undefined: there is no such file. */
  readonly jinja: string | undefined;
}

export function openPromptTemplate({ config, jinja }: TemplateFiles): FoundTemplate {
  const plain = jinja ?? templateSource(config['chat_template']);
  if (plain === undefined) return none('its model has no chat template');
  // Some models have another template for prompts with tools.
  const withTools = jinja === undefined ? templateSource(config['chat_template'], 'tool_use') : undefined;
  if ([plain, withTools].some((source) => source?.includes('strftime_now') === true))
    return none('its chat template writes the time, which is not the same here and there');
  let templates: readonly [ChatTemplate, ChatTemplate];
  try {
    const compiled = compileChatTemplate(plain);
    templates = [compiled, withTools === undefined ? compiled : compileChatTemplate(withTools)];
  } catch (thrown) {
    if (thrown instanceof ChatTemplateError) return none(`its chat template cannot be rendered here: ${shorten(thrown.message)}`);
    throw thrown;
  }
  const [forText, forTools] = templates;
  const render = (parts: PromptParts) => renderWith(parts.tools.length > 0 ? forTools : forText, parts, config);
  return { kind: 'found', template: { render, isPreparedInPython: isPythonTokenizer(config) } };
}

function renderWith(template: ChatTemplate, { messages, tools, kwargs }: PromptParts, config: TemplateFiles['config']): Rendered {
  try {
    const text = template({
      messages,
      bosToken: tokenText(config['bos_token']),
      eosToken: tokenText(config['eos_token']),
      addGenerationPrompt: true,
      kwargs: { ...otherTokens(config), ...kwargs, tools: tools.length > 0 ? tools : null, documents: null },
    });
    return { text };
  } catch (thrown) {
    if (thrown instanceof ChatTemplateError) return { refused: shorten(thrown.message) };
    throw thrown;
  }
}

/** transformers gives a template every special token by its name. */
function otherTokens(config: TemplateFiles['config']): Record<string, string> {
  return Object.fromEntries(
    ['pad_token', 'unk_token', 'sep_token', 'cls_token'].flatMap((name) => {
      const text = tokenText(config[name]);
      return text === '' ? [] : [[name, text]];
    }),
  );
}

/** `auto_map` names a class in a Python file of the repository. */
function isPythonTokenizer(config: TemplateFiles['config']): boolean {
  const map = config['auto_map'];
  return typeof map === 'object' && map !== null && 'AutoTokenizer' in map;
}

function none(because: string): FoundTemplate {
  return { kind: 'none', because };
}

/** A template's own words may be of any length. */
function shorten(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
