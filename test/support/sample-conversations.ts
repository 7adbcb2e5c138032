/** Right records of every kind a run can make: given answers, tools, reasoning, a system message; walked as a run walks them. */
import fc from 'fast-check';
import type { Message, ToolCall } from '../../src/base/conversation.ts';
import type { RecordTurn, TrainingRecord } from '../../src/shard/record.ts';
import { findNextTurn } from '../../src/shard/walk-conversation.ts';
import { sampleMessage, sampleRecord, sampleTurn } from './sample-records.ts';

/** Any text that a trainer takes, with what loaders stumble over: line ends of other languages, emoji, quotes. */
const text = fc
  .array(fc.constantFrom('a', 'Ж', '漢', '😀', '"', '\\', '\n', '\u2028', '\u0085', ' '), { maxLength: 8 })
  .map((parts) => `x${parts.join('')}`);

const prompt = fc
  .tuple(fc.boolean(), fc.array(fc.tuple(fc.constantFrom('ask', 'ask', 'given', 'tool'), text), { minLength: 1, maxLength: 4 }))
  .map(([withSystem, parts]): Message[] => {
    const turns = parts.flatMap(([kind, said]) => {
      const user = sampleMessage('user', said);
      if (kind === 'given') return [user, sampleMessage('assistant', `given ${said}`)];
      return kind === 'tool' ? [user, { ...sampleMessage('tool', `found ${said}`), name: 'look' }] : [user];
    });
    const all = [...(withSystem ? [sampleMessage('system', 'be brief')] : []), ...turns];
    // A source that ends in a given answer asks for nothing after it.
    return all.at(-1)?.role === 'assistant' ? [...all, sampleMessage('user', 'and then?')] : all;
  });

const TOOL =
  '{"type":"function","function":{"name":"look","parameters":{"type":"object","properties":{"at":{"type":"string"}}}}}';

const answer = fc.record({ said: text, reasons: fc.boolean(), calls: fc.boolean(), continues: fc.boolean() });

export const anyConversation: fc.Arbitrary<TrainingRecord> = fc
  .record({
    number: fc.integer({ min: 0, max: 1e9 }),
    messages: prompt,
    withTools: fc.boolean(),
    withReasoning: fc.boolean(),
    answers: fc.infiniteStream(answer),
  })
  .map(({ number, messages, withTools, withReasoning, answers }) => {
    const turns: RecordTurn[] = [];
    let before = 0;
    while (findNextTurn(messages, turns).kind === 'ask') {
      const { said, reasons, calls, continues } = answers.next().value as {
        said: string;
        reasons: boolean;
        calls: boolean;
        continues: boolean;
      };
      const call: ToolCall = { id: `call-${turns.length}`, name: 'look', arguments: JSON.stringify({ at: said }) };
      const toolCalls = withTools && calls ? [call] : [];
      const turn = sampleTurn({
        continues: continues ? before : 0,
        promptIds: [1, 30 + turns.length],
        outputIds: [20 + turns.length, 50, 2],
        text: toolCalls.length > 0 ? '' : said,
        reasoning: withReasoning && reasons ? `because ${said}` : '',
        toolCalls,
        finish: toolCalls.length > 0 ? 'tool-calls' : 'stop',
      });
      before = turn.continues + turn.promptIds.length + turn.outputIds.length;
      turns.push(turn);
    }
    return sampleRecord({ id: `id${number}`, messages, turns, tools: withTools ? [TOOL] : [] });
  });
