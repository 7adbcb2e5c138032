/**
 * The least that a driver can do: undici's pool, the reply read and parsed, and dropped. Nothing is checked and nothing
 * kept. `node plain-loop.mjs URL PROMPTS IN_FLIGHT MAX_TOKENS`
 */
import { readFileSync } from 'node:fs';
import { Pool } from 'undici';
import { loop, requestOf } from './loop.mjs';

const [url, file, inFlight, maxTokens] = process.argv.slice(2);
const prompts = readFileSync(file, 'utf8').trimEnd().split('\n');
const pool = new Pool(url, { connections: Number(inFlight), headersTimeout: 0, bodyTimeout: 0 });

await loop(prompts, Number(inFlight), async (line) => {
  const reply = await pool.request({
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(requestOf(line, Number(maxTokens))),
  });
  const answer = JSON.parse(await reply.body.text());
  if (answer.choices.length !== 1) throw new Error('an answer without a choice');
});
await pool.close();
