/** Played on this machine; the same over ssh stands beside it. */
import { describeLeftovers } from './launch/leftovers.ts';

describeLeftovers('here');
