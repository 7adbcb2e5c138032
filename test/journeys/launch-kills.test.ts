/** Played on this machine; the same over ssh stands beside it. */
import { describeKills } from './launch/kills.ts';

describeKills('here');
