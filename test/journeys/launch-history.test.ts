/** Played on this machine; the same over ssh stands beside it. */
import { describeHistory } from './launch/history.ts';

describeHistory('here');
