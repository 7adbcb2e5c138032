/**
 * The closed table of what `aerie check` can find. An error means that the records contradict themselves or their format:
 * do not train on them; or that a trainer would drop them or learn something else from them without a word. A warning means
 * that they are right and something about them should be known.
 * `RUN` in `next` stands for the run as it was named on the command line, `LENGTH` for the length that rows are cut at.
 */
export type Severity = 'error' | 'warning';

export interface FindingKind {
  readonly severity: Severity;
  /** One sentence for people; the count is printed before it. */
  readonly sentence: string;
  /** What to type or change. */
  readonly next: string;
}

/** `more`: what check was told and export must be told too, to find the same records. */
const leaveOut = (code: string, more = '') =>
  `aerie export RUN --for specforge --without ${code}${more}   leaves them out, with the count`;
const askAgain = (code: string) => `aerie run RUN --redo ${code}   asks them again; or ${leaveOut(code)}`;
const REPORT = 'aerie check RUN --json   shows the ids; please report it, the records are kept as they are';

export const FINDINGS = {
  'record-unreadable': {
    severity: 'error',
    sentence: 'cannot be read back: their bytes are not the ones that were committed',
    next: 'put back a copy of records/ in the run folder, or of the whole run folder; nothing was changed by looking',
  },
  'record-shape': { severity: 'error', sentence: 'have keys or types that a record does not have', next: REPORT },
  'duplicate-key': { severity: 'error', sentence: 'come twice: the same partition and id', next: REPORT },
  'message-order': {
    severity: 'error',
    sentence: 'do not have one answer for each user message, or have other roles between them',
    next: REPORT,
  },
  'id-out-of-range': {
    severity: 'error',
    sentence: 'hold a token id that is no whole number from 0 to the vocabulary',
    next: 'aerie status RUN   shows the model; is it the one that served? Such rows are left out of exports',
  },
  'ids-missing': {
    severity: 'error',
    sentence: 'are said to be exact and lack the ids of a prompt or an answer, so that nothing is supervised',
    next: REPORT,
  },
  'supervision-cut': {
    severity: 'error',
    sentence:
      'have a prompt so long that a trainer which cuts rows at LENGTH tokens sees nothing of the answer, and drops the row without a word',
    next: `${leaveOut('supervision-cut', ' --max-length LENGTH')}; or train with a greater length and say so: aerie check RUN --max-length N`,
  },
  'longer-than-context': {
    severity: 'error',
    sentence: 'have a prompt and answer longer than the context the server was launched with',
    next: REPORT,
  },
  'turn-does-not-continue': {
    severity: 'error',
    sentence: "have a turn whose prompt does not begin with everything before it, and are not flagged 'history-retokenised'",
    next: REPORT,
  },
  'flags-differ': { severity: 'error', sentence: 'have flags that their turns do not bear out', next: REPORT },
  'usage-differs': {
    severity: 'error',
    sentence: 'have counts from the engine that are not the number of their ids',
    next: 'aerie status RUN   shows the server; an engine that counts differently from what it sends is not exact',
  },
  'stop-id-missing': {
    severity: 'error',
    sentence: "ended by 'stop' without a stop id at the end",
    next: 'aerie export RUN --for specforge   is safe, but the drafter will not learn to end; look at the stop ids of the model',
  },
  'stop-id-unexpected': {
    severity: 'error',
    sentence: "end in a stop id and did not end by 'stop', or say of it what is not so",
    next: REPORT,
  },
  'text-differs': {
    severity: 'error',
    sentence: "have ids that do not decode to the engine's own text",
    next: 'aerie check RUN --json   shows the ids; compare tokenizer/ in the run folder with the model that served',
  },
  'unpaired-surrogate': {
    severity: 'error',
    sentence: 'hold half a character (an unpaired surrogate) in a text',
    next: 'aerie export RUN --for specforge   leaves them out of conversations; token rows are not touched by it',
  },
  'nul-character': {
    severity: 'warning',
    sentence: 'hold a NUL character in a text',
    next: 'aerie export RUN --for specforge   leaves them out of conversations; token rows are not touched by it',
  },
  'think-marker': {
    severity: 'warning',
    sentence: 'hold <think> or </think> in an answer',
    next: 'start the server with its reasoning parser; aerie export RUN --for specforge   leaves these out of conversations',
  },
  'empty-content': {
    severity: 'warning',
    sentence: 'hold an empty message or answer',
    next: askAgain('empty-content'),
  },
  'special-token': {
    severity: 'warning',
    sentence: 'hold a special token inside an answer, which its text does not show',
    next: 'aerie check RUN --json   shows which; token rows keep it, conversations do not',
  },
  'template-marker': {
    severity: 'warning',
    sentence: 'hold in a text what chat templates write between messages (<|im_start|>, [INST] …)',
    next: `${leaveOut('template-marker')}; token rows are right, a trainer that renders text finds answers where none are`,
  },
  'repetition-loop': {
    severity: 'warning',
    sentence: 'have an answer that says the same stretch of tokens again and again',
    next: askAgain('repetition-loop'),
  },
  refusal: {
    severity: 'warning',
    sentence: 'have an answer that begins by refusing',
    next: leaveOut('refusal'),
  },
  'near-duplicate': {
    severity: 'warning',
    sentence: 'say nearly what an earlier record says, prompt and answer together',
    next: leaveOut('near-duplicate'),
  },
  'benchmark-overlap': {
    severity: 'warning',
    sentence: 'have a prompt in common with the list of benchmark prompts: what is measured on it later will flatter',
    next: leaveOut('benchmark-overlap', ' --benchmarks FILE'),
  },
  'prompt-drift': {
    severity: 'warning',
    sentence: "have prompt ids that are not what the run folder's chat template and tokenizer make of the messages",
    next: 'aerie export RUN --for speculators   has the ids that served; trainers that render text need the template that served',
  },
  'answer-drift': {
    severity: 'warning',
    sentence: 'have an answer that the tokenizer splits otherwise than the model wrote it',
    next: 'aerie export RUN --for speculators   has the ids that the model wrote; rows of text lose them',
  },
  'template-refuses': {
    severity: 'warning',
    sentence: 'are refused by the chat template, so that they were not compared and no trainer can render them',
    next: leaveOut('template-refuses'),
  },
  'row-cut': {
    severity: 'warning',
    sentence: 'are longer than LENGTH tokens: a trainer cuts the answer there, and its end is not learnt',
    next: 'train with a greater length and say so: aerie check RUN --max-length N; or keep answers shorter by sampling.max-tokens',
  },
  'tool-result-missing': {
    severity: 'warning',
    sentence: 'end with a tool call for which the source has no result',
    next: `add the results to the source, or ${leaveOut('tool-result-missing')}`,
  },
  'context-full': {
    severity: 'warning',
    sentence: 'end before their last turn, which had no room in the context of the server',
    next: `with a longer context: ${askAgain('context-full')}`,
  },
  'history-stripped': {
    severity: 'warning',
    sentence: 'have earlier reasoning that the template drops from the history: each turn becomes a row of its own',
    next: 'aerie export RUN --for specforge   nothing else to do: each row is what the engine was given',
  },
  'history-retokenised': {
    severity: 'warning',
    sentence: 'have turns that do not continue the one before exactly: each turn becomes a row of its own',
    next: 'aerie export RUN --for specforge   nothing else to do: each row is what the engine was given',
  },
  truncated: {
    severity: 'warning',
    sentence: 'have an answer that was cut at the cap',
    next: 'raise sampling.max-tokens, or say truncated: continue in the partition, and aerie run RUN --redo truncated --amend asks them again; or leave them: token rows are right, conversations end early',
  },
  'not-exact': {
    severity: 'warning',
    sentence: 'have no token ids from the engine: they are left out of token rows',
    next: 'aerie export RUN --for specforge   writes them as conversations; an engine that returns ids makes exact ones',
  },
} as const satisfies Readonly<Record<string, FindingKind>>;

export type FindingCode = keyof typeof FINDINGS;
export const FINDING_CODES = Object.keys(FINDINGS) as readonly FindingCode[];

/** What is known of the model; what is not known is not checked. */
export interface CheckFacts {
  /** Ids are below this; 0 = unknown. */
  readonly vocabularySize: number;
  /** Ids that end an answer; empty = unknown. */
  readonly stopIds: readonly number[];
  /** Most tokens of prompt + answer; 0 = unknown. */
  readonly contextTokens: number;
  /** A trainer cuts rows here. Left out: `DEFAULT_MAX_LENGTH`. */
  readonly maxLength?: number;
  /** By partition, what its requests gave to the chat template beside the messages. Left out: nothing. */
  readonly templateKwargs?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}
