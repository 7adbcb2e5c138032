/**
 * Why a prompt is set aside: a closed union, with a sentence for people and what to do. The reasons of input rows are in
 * `dataset/rejection.ts`; these are of prompts that were rows, and were asked.
 */
export const ASIDE_REASONS = [
  'longer-than-context',
  'no-room-for-answer',
  'refused',
  'answer-withheld',
  'poison-kills',
  'poison-fails',
] as const;
export type AsideReason = (typeof ASIDE_REASONS)[number];

/** Those by which a turn has no room in the context of the server: a conversation can end before it. */
export const CONTEXT_REASONS = ['longer-than-context', 'no-room-for-answer'] as const satisfies readonly AsideReason[];
export type ContextReason = (typeof CONTEXT_REASONS)[number];

export function isContextReason(reason: string | undefined): reason is ContextReason {
  return (CONTEXT_REASONS as readonly (string | undefined)[]).includes(reason);
}

export interface AsideExplanation {
  readonly sentence: string;
  /** What to change; `aerie run RUN --retry-failed` asks them again. */
  readonly next: string;
}

const LONGER = 'start the server with a longer context';

export const ASIDE_EXPLANATION: Readonly<Record<AsideReason, AsideExplanation>> = {
  'longer-than-context': {
    sentence: 'The prompt fills the context of the server: no token is left for an answer.',
    next: `${LONGER}, then: aerie run RUN --retry-failed`,
  },
  'no-room-for-answer': {
    sentence: 'The prompt and max-tokens together are longer than the context of the server.',
    next: `${LONGER}, then: aerie run RUN --retry-failed; or lower max-tokens, then: aerie run RUN --amend --retry-failed`,
  },
  refused: {
    sentence: 'The server refuses this prompt and answers others.',
    next: 'read its words above; when that is mended: aerie run RUN --retry-failed',
  },
  'answer-withheld': {
    sentence: 'The endpoint has withheld the answer (content_filter).',
    next: 'nothing, or another endpoint; then: aerie run RUN --retry-failed',
  },
  'poison-kills': {
    sentence: 'The server was lost each time this prompt was in flight.',
    next: 'look at the log of the server; when that is mended: aerie run RUN --retry-failed',
  },
  'poison-fails': {
    sentence: 'It failed again and again while others were answered (5xx, a reply that contradicts itself, no answer in time).',
    next: 'look at the log of the server; when that is mended: aerie run RUN --retry-failed',
  },
};
