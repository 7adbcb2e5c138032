/** The same as on this machine, on a box behind ssh. */
import { describeRecovery } from './launch/recovery.ts';

describeRecovery('ssh');
