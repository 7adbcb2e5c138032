/** A model's chat template, rendered as its server renders it; what cannot be rendered the same is none, with the reason. */
import { expect, test } from 'vitest';
import type { PromptParts } from '../base/prompt-template.ts';
import { openPromptTemplate } from './prompt-template.ts';

const CHAT = `{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ eos_token }}{% endfor %}
{%- if tools %}[{{ tools | tojson }}]{% endif %}{% if add_generation_prompt %}<|assistant|>{% endif %}{{ mood or '' }}`;
const TOKENS = { bos_token: '<s>', eos_token: { content: '</s>' } };
const ask = (parts: Partial<PromptParts> = {}): PromptParts => ({
  messages: [{ role: 'user', content: 'hi' }],
  tools: [],
  kwargs: {},
  ...parts,
});

function open(config: Record<string, unknown>, jinja?: string) {
  const found = openPromptTemplate({ config, jinja });
  if (found.kind === 'none') throw new Error(found.because);
  return found.template;
}

test('messages, special tokens, keywords and the opening of the answer', () => {
  const template = open({ ...TOKENS, chat_template: CHAT });
  expect(template.render(ask({ kwargs: { mood: '!', messages: [], tools: ['x'] } }))).toEqual({
    text: '<s><|user|>hi</s><|assistant|>!',
  });
  expect(template.isPreparedInPython).toBe(false);
});

test('the file of its own goes before the configuration; of several templates, the one for tools where there are tools', () => {
  expect(open({ chat_template: 'a' }, 'b').render(ask())).toEqual({ text: 'b' });
  const several = open({
    chat_template: [
      { name: 'default', template: 'plain' },
      { name: 'tool_use', template: 'tools' },
    ],
  });
  expect([several.render(ask()), several.render(ask({ tools: [{}] }))]).toEqual([{ text: 'plain' }, { text: 'tools' }]);
});

test('tools are written as Python writes JSON, in the order that they were given in', () => {
  const tools = [{ type: 'function', function: { description: null, name: 'f', strict: false } }];
  expect(open({ chat_template: '{{ tools | tojson }}' }).render(ask({ tools }))).toEqual({
    text: '[{"type": "function", "function": {"description": null, "name": "f", "strict": false}}]',
  });
});

test('a template that refuses the messages says so, and a tokenizer in Python is known by its map', () => {
  const template = open({ chat_template: "{{ raise_exception('no system') }}", auto_map: { AutoTokenizer: ['x.Y', null] } });
  expect(template.render(ask())).toEqual({ refused: expect.stringContaining('no system') as string });
  expect(template.isPreparedInPython).toBe(true);
});

test.each([
  [{}, undefined, /no chat template/],
  [{ chat_template: 7 }, undefined, /no chat template/],
  [{ chat_template: '{% if %}' }, undefined, /cannot be rendered here/],
  [{}, '{% for %}', /cannot be rendered here/],
  [{ chat_template: "{{ strftime_now('%d') }}" }, undefined, /writes the time/],
])('%j and %j: none', (config, jinja, because) => {
  const found = openPromptTemplate({ config, jinja });
  expect(found).toEqual({ kind: 'none', because: expect.stringMatching(because) as string });
});
