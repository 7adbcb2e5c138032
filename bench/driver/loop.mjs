/** What the two drivers without a disk share: so many askers, each with the next prompt as soon as it has its answer. */
export async function loop(prompts, inFlight, ask) {
  let next = 0;
  const asker = async () => {
    while (next < prompts.length) await ask(prompts[next++]);
  };
  await Promise.all(Array.from({ length: inFlight }, asker));
}

/** The body that Aerie sends too. */
export function requestOf(line, maxTokens) {
  return {
    model: 'mock',
    messages: [{ role: 'user', content: JSON.parse(line).prompt }],
    max_tokens: maxTokens,
    temperature: 0.7,
    top_p: 1,
    seed: 7,
    stream: false,
    return_token_ids: true,
  };
}
