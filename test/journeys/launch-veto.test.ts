/** Played on this machine; the same over ssh stands beside it. */
import { describeVeto } from './launch/veto.ts';

describeVeto('here');
