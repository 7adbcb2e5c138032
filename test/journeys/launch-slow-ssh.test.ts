/** The same as on this machine, on a box behind ssh. */
import { describeSlowStart } from './launch/slow.ts';

describeSlowStart('ssh');
