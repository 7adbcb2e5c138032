/**
 * `truncated: continue`: what it cannot stand beside. A further request must mean what one longer request would have meant;
 * where it would not, the run file is refused before anything is asked. Pure, over the file as written.
 */
import { valueAt } from './explain-issue.ts';
import type { Path, Problem } from './problem.ts';

/** They look at one token at a time, so that two requests are as good as one. Penalties count what was answered, formats are begun anew. */
const FIELDS_THAT_GO_ON: readonly string[] = ['min_p', 'logit_bias', 'stop_token_ids'];

export function checkContinue(file: unknown, servers: readonly unknown[]): Problem[] {
  const partitions = valueAt(file, ['partitions']);
  if (!Array.isArray(partitions)) return [];
  const plain = servers.findIndex((_, i) => valueAt(file, ['servers', i, 'engine']) === 'openai');
  return partitions.flatMap((_, i) => checkPartition(file, ['partitions', i], plain));
}

function checkPartition(file: unknown, path: Path, plain: number): Problem[] {
  const at: Path = [...path, 'truncated'];
  if (valueAt(file, at) !== 'continue') {
    if (valueAt(file, [...path, 'continuations']) === undefined) return [];
    return [{ path: [...path, 'continuations'], at: 'key', message: 'means something only beside truncated: continue' }];
  }
  const say = (message: string): Problem[] => [{ path: at, at: 'value', message: `is continue, ${message}` }];
  const asked = (key: string) => valueAt(file, [...path, 'sampling', key]) ?? valueAt(file, ['sampling', key]);
  const extra = Object.keys(asked('extra-body') ?? {}).find((key) => !FIELDS_THAT_GO_ON.includes(key));
  return [
    ...(plain === -1
      ? []
      : say(
          `which needs token ids, and servers[${plain}].engine is openai: such an endpoint takes text and gives text; write keep or drop`,
        )),
    ...(asked('stop') === undefined
      ? []
      : say('which cannot stand beside sampling.stop: a stop text that lies across two requests would not be seen')),
    ...(extra === undefined
      ? []
      : say(
          `which cannot stand beside sampling.extra-body.${extra}: it would begin anew with each request (only ${FIELDS_THAT_GO_ON.join(', ')} go on)`,
        )),
  ];
}
