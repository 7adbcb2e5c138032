import type { Account } from '../account.ts';
import type { Look } from './look.ts';
export function describeProgress({ phase, progress }: Account, _looks: readonly Look[]): string {
  return progress === undefined ? phase : `${phase} ${progress.done} of ${progress.of}`;
}
