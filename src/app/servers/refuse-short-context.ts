/** A server whose context is not longer than the longest answer asked for: every prompt would be refused, and none would be to blame. */
import { AerieError } from '../../base/errors.ts';
import { judgeLengths } from '../../engine/context-refusal.ts';
import type { EngineName, ServerFacts } from '../../engine/dialect.ts';
import type { RunSpec, ServerSpec } from '../../spec/run.ts';

/** What gives an engine a longer context. */
const LONGER: Readonly<Record<EngineName, string>> = {
  embedded: 'give it a longer one (flags: { context: N })',
  vllm: 'start it with a longer one (--max-model-len N)',
  sglang: 'start it with a longer one (--context-length N)',
  openai: 'start it with a longer one',
};

export function refuseShortContext(run: RunSpec, server: ServerSpec, { contextTokens: context }: ServerFacts): void {
  for (const { name, ask } of run.partitions) {
    const answer = ask.sampling.maxTokens;
    const isLaidOver = 'max_tokens' in ask.extraBody || 'max_completion_tokens' in ask.extraBody;
    if (context === 0 || isLaidOver || answer < context) continue;
    const { because } = judgeLengths({ prompt: 0, answer, context });
    throw new AerieError('server.rejects', `${server.name} has too short a context for partition ${name}: ${because}.`, {
      remedy:
        `Lower max-tokens under sampling: (of the run or of ${name}) until it leaves room for the prompts, or ` +
        `${LONGER[server.engine]}. Nothing was asked of it.`,
      facts: { server: server.name, contextTokens: context, maxTokens: answer },
    });
  }
}
