/** The same as on this machine, on a box behind ssh. */
import { describeStory } from './launch/story.ts';

describeStory('ssh');
