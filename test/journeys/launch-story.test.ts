/** Played on this machine; the same over ssh stands beside it. */
import { describeStory } from './launch/story.ts';

describeStory('here');
