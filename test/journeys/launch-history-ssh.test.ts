/** The same as on this machine, on a box behind ssh. */
import { describeHistory } from './launch/history.ts';

describeHistory('ssh');
