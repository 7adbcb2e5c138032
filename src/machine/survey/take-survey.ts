/** Asks a machine for a survey: one command, one round trip. Values on failure, never exceptions: a machine away is an answer. */
import { AerieError } from '../../base/errors.ts';
import type { CommandResult } from '../../host/commands.ts';
import type { Random } from '../../host/host.ts';
import type { Machine } from '../machine.ts';
import { readSurvey } from './read-survey.ts';
import { interpretSurvey, type Survey } from './survey.ts';
import { renderSurvey, type SurveyQuestion } from './survey-script.ts';

export type SurveyResult =
  | { readonly kind: 'seen'; readonly survey: Survey }
  /** Why nothing was seen. `isAway`: the machine could not be reached. `refusal`: it lets nobody in, and waiting does not mend it. */
  | { readonly kind: 'unseen'; readonly because: string; readonly isAway: boolean; readonly refusal?: AerieError };

export async function takeSurvey(
  machine: Pick<Machine, 'run'>,
  asked: Omit<SurveyQuestion, 'nonce'>,
  { random, timeoutMs, signal }: { readonly random: Random; readonly timeoutMs: number; readonly signal: AbortSignal },
): Promise<SurveyResult> {
  const nonce = `s${random().toString(36).slice(2)}${random().toString(36).slice(2)}`;
  const question = { ...asked, nonce };
  try {
    const result = await machine.run({ file: 'sh', args: ['-c', renderSurvey(question)], timeoutMs, signal });
    if (result.kind !== 'ended') return { kind: 'unseen', because: describe(result, timeoutMs), isAway: false };
    const parts = readSurvey(result.stdout, nonce);
    if (parts.parts.size > 0) return { kind: 'seen', survey: interpretSurvey(parts, question) };
    const words = `${result.stderr}\n${result.stdout}`.trim().split('\n')[0] ?? '';
    return {
      kind: 'unseen',
      because: `its shell ended with ${result.code}${words === '' ? '' : `: ${words.slice(0, 200)}`}`,
      isAway: false,
    };
  } catch (thrown) {
    if (!(thrown instanceof AerieError)) throw thrown;
    const refusal = thrown.code === 'machine.refused' ? { refusal: thrown } : {};
    return { kind: 'unseen', because: thrown.message, isAway: thrown.code === 'machine.unreachable', ...refusal };
  }
}

function describe(result: Exclude<CommandResult, { kind: 'ended' }>, timeoutMs: number): string {
  switch (result.kind) {
    case 'absent':
      return 'there is no sh';
    case 'timeout':
      return `it did not answer in ${Math.round(timeoutMs / 1000)} s`;
    case 'aborted':
      return 'it was not waited for longer';
    case 'died':
      return result.because;
  }
}
