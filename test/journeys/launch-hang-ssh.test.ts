/** The same as on this machine, on a box behind ssh. */
import { describeHangs } from './launch/hang.ts';

describeHangs('ssh');
