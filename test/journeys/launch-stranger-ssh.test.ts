/** The same as on this machine, on a box behind ssh. */
import { describeStranger } from './launch/stranger.ts';

describeStranger('ssh');
