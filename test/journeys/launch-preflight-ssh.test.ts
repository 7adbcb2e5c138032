/** The same as on this machine, on a box behind ssh. */
import { describePreflight } from './launch/preflight.ts';

describePreflight('ssh');
