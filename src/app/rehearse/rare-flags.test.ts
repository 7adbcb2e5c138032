import { expect, test } from 'vitest';
import { findRareFlags } from './rare-flags.ts';

const HELP = 'usage: launch_server.py [-h] --model-path MODEL_PATH [--tp-size TP_SIZE] [--mem-fraction-static F]\n';

test('what the lookalike lacks is found, and a slip is not', () => {
  const flags = { 'tp-size': 8, 'mem-fraction-statik': 0.9, 'enable-some-rare-thing': true };
  expect(findRareFlags({ engine: 'sglang', flags }, HELP)).toEqual(['enable-some-rare-thing']);
  expect(findRareFlags({ engine: 'sglang', flags }, 'no help at all')).toEqual([]);
});
