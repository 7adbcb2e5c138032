/** The same loop through the `openai` package, as its manual has it. `node openai-sdk.mjs URL PROMPTS IN_FLIGHT MAX_TOKENS` */
import { readFileSync } from 'node:fs';
import OpenAI from 'openai';
import { loop, requestOf } from './loop.mjs';

const [url, file, inFlight, maxTokens] = process.argv.slice(2);
const prompts = readFileSync(file, 'utf8').trimEnd().split('\n');
// An hour: the default of ten minutes is of no matter here, a retry would be.
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'none', maxRetries: 0, timeout: 3_600_000 });

await loop(prompts, Number(inFlight), async (line) => {
  const answer = await client.chat.completions.create(requestOf(line, Number(maxTokens)));
  if (answer.choices.length !== 1) throw new Error('an answer without a choice');
});
process.exit(0); // its sockets stay open for a while
