/** Played on this machine; the same over ssh stands beside it. */
import { describeVerify } from './launch/verify.ts';

describeVerify('here');
