/** The same as on this machine, on a box behind ssh. */
import { describeVeto } from './launch/veto.ts';

describeVeto('ssh');
