/** Played on this machine; the same over ssh stands beside it. */
import { describePreflight } from './launch/preflight.ts';

describePreflight('here');
