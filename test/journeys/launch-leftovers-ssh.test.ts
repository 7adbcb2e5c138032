/** The same as on this machine, on a box behind ssh. */
import { describeLeftovers } from './launch/leftovers.ts';

describeLeftovers('ssh');
