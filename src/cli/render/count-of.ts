/** A number with its noun: `1 record`, `2,000 records`. Pure. */
import { formatCount } from '../../base/units.ts';

export function countOf(count: number, thing: string): string {
  return `${formatCount(count)} ${thing}${count === 1 ? '' : 's'}`;
}
