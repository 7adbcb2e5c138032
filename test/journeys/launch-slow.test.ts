/** Played on this machine; the same over ssh stands beside it. */
import { describeSlowStart } from './launch/slow.ts';

describeSlowStart('here');
