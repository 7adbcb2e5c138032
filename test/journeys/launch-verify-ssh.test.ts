/** The same as on this machine, on a box behind ssh. */
import { describeVerify } from './launch/verify.ts';

describeVerify('ssh');
