/** Played on this machine; the same over ssh stands beside it. */
import { describeStranger } from './launch/stranger.ts';

describeStranger('here');
