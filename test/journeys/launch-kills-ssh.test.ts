/** The same as on this machine, on a box behind ssh. */
import { describeKills } from './launch/kills.ts';

describeKills('ssh');
