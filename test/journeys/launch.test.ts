/** A launch of SGLang from nothing to records, and what is left when the worker ends. */
import { expect, test } from 'vitest';
import { launchProject } from '../support/launch-project.ts';

test('a run launches its server, verifies it, generates, and leaves it running for the next', async () => {
  const project = await launchProject({ prompts: 6 });
  const first = await project.aerie('run', 'run.yaml');
  expect(first.stderr).toContain('verified');
  expect(first.code).toBe(0);
});
