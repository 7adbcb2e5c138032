import { expect, test } from 'vitest';
import { explainLostAnswer } from './lost-answer.ts';

test('a reader that has enough loses nothing, and neither does a terminal that has gone', () => {
  for (const code of ['EPIPE', 'ECONNRESET', 'ERR_STREAM_DESTROYED', '']) expect(explainLostAnswer(code, false)).toBeUndefined();
  expect(explainLostAnswer('EIO', true)).toBeUndefined();
});

test('a file that took only a part of the answer is told with an exit code', () => {
  expect(explainLostAnswer('EIO', false)).toMatchObject({ code: 'disk.failed', exitCode: 3 });
  for (const code of ['ENOSPC', 'EDQUOT', 'EFBIG']) {
    const lost = explainLostAnswer(code, false);
    expect(lost).toMatchObject({ code: 'disk.full', message: `The answer could not be written to stdout (${code}).` });
    expect(lost?.exitCode).toBeGreaterThan(0);
  }
});
