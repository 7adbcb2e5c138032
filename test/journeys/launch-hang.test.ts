/** Played on this machine; the same over ssh stands beside it. */
import { describeHangs } from './launch/hang.ts';

describeHangs('here');
