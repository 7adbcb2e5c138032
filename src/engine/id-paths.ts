/**
 * A table: engine and version → how the token ids of prompt and answer are had, and whether a record is exact by it.
 * Rows of one engine stand newest first, each from the version that it names. Data, and the look-up; `docs/servers.md`
 * shows it, and a test holds the two together.
 *
 * Sources: vLLM's change of 0.10.2 (`return_token_ids`); SGLang's packages, in which 0.5.3 has no `/tokenize` and 0.5.4 has
 * one, 0.5.8 gives a template the bare functions of tools and 0.5.9 whole tools, 0.5.12 has no `return_prompt_token_ids`
 * and 0.5.13 has it; `output_ids` of `/generate` since 0.4.7.
 */
import type { EngineName, Exactness, IdsPromise } from './dialect.ts';
import { isAtLeast } from './version.ts';

/**
 * - `return-token-ids`: one field asks for both.
 * - `meta-info`: prompt ids by a field, the answer's beside its log-probabilities.
 * - `rendered`: the prompt is rendered here, tokenised there by `/tokenize`, and sent as `input_ids` to `/generate`.
 * - `text`: there are none.
 */
export type IdPathKind = 'return-token-ids' | 'meta-info' | 'rendered' | 'text';

export interface IdPath {
  readonly engine: EngineName;
  /** The first version that the row is about. */
  readonly from: readonly [number, number, number];
  readonly kind: IdPathKind;
  /** For people: how the ids are had. */
  readonly how: string;
  /** … and what has to be there for it; '' = nothing more. */
  readonly needs: string;
  /** Why no record is exact; '' where they can be. */
  readonly because: string;
}

const RETURNED = { kind: 'return-token-ids', how: '`return_token_ids`', needs: '', because: '' } as const;
const ANY = [0, 0, 0] as const;

/** The first version of SGLang whose template is given tools in their envelope; before, it is given the bare functions. */
export const SGLANG_WHOLE_TOOLS = [0, 5, 9] as const;

export const ID_PATHS: readonly IdPath[] = [
  { engine: 'embedded', from: ANY, ...RETURNED },
  { engine: 'vllm', from: [0, 10, 2], ...RETURNED },
  {
    ...{ engine: 'vllm', from: ANY, kind: 'text', needs: '' },
    how: "the prompt's alone, by `/tokenize` with its messages; the answer's are not told",
    because: 'it gives the answer as text only; token ids come with 0.10.2',
  },
  { engine: 'sglang', from: [0, 5, 18], ...RETURNED },
  {
    ...{ engine: 'sglang', from: [0, 5, 13], kind: 'meta-info', needs: '', because: '' },
    how: "`return_prompt_token_ids`, and the answer's ids in `meta_info` beside its log-probabilities (`logprobs: true`)",
  },
  {
    ...{ engine: 'sglang', from: [0, 5, 4], kind: 'rendered', because: '' },
    how: "the model's own chat template is rendered here, `/tokenize` gives the prompt's ids, `/generate` takes them and gives the answer's",
    needs: "the chat template, as Jinja; prompts as long as the server's own, looked at for the first 32 and then 1 in 256",
  },
  {
    ...{ engine: 'sglang', from: ANY, kind: 'text', needs: '' },
    how: 'none: `/tokenize` comes with 0.5.4',
    because: 'it gives no token ids with a chat and has no /tokenize; that comes with 0.5.4, ids with a chat with 0.5.13',
  },
  {
    ...{ engine: 'openai', from: ANY, kind: 'text', needs: '' },
    how: 'none is asked for: such endpoints refuse fields they do not know',
    because: 'the engine is openai: such endpoints give text, no token ids',
  },
];

/** undefined: the version is not told, so ids are asked for in every way that an older server passes over, and what comes is judged. */
export function idPathOf(engine: EngineName, version: string): IdPath | undefined {
  const rows = ID_PATHS.filter((row) => row.engine === engine);
  if (rows.length === 1) return rows[0];
  return rows.find(({ from }) => isAtLeast(version, from) === true);
}

export const TEXT_ONLY = 'text only, no token ids';
const NOT_TOLD = 'the server does not tell its version: ids are asked for, and each record says what came';

/** For the paths that the version alone decides; `who` = the engine and its version, for people. */
export function exactnessByPath(path: IdPath | undefined, who: string): Exactness {
  if (path === undefined) return { exact: true, how: NOT_TOLD, because: '' };
  if (path.kind !== 'text') return { exact: true, how: path.how, because: '' };
  return { exact: false, how: TEXT_ONLY, because: path.because.replace(/^it /, `${who} `) };
}

/** What a reply to a chat holds. */
export function promiseByPath(path: IdPath | undefined): IdsPromise {
  if (path === undefined) return 'unknown';
  return path.kind === 'text' || path.kind === 'rendered' ? 'never' : 'always';
}
