/** Played on this machine; the same over ssh stands beside it. */
import { describeRecovery } from './launch/recovery.ts';

describeRecovery('here');
