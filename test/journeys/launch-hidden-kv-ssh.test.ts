/** The same as on this machine, on a box behind ssh. */
import { describeHiddenKv } from './launch/hidden-kv.ts';

describeHiddenKv('ssh');
