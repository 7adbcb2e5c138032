/** Played on this machine; the same over ssh stands beside it. */
import { describeHiddenKv } from './launch/hidden-kv.ts';

describeHiddenKv('here');
