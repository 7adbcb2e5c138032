import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { peelLine, splitLog } from './log-envelope.ts';

describe('peelLine', () => {
  it.each([
    [
      '[2026-01-30 01:13:16 TP0] Load weight begin.',
      { at: '2026-01-30 01:13:16', who: 'TP0', level: '', message: 'Load weight begin.' },
    ],
    ['[2026-01-30 01:13:16 DP1 TP3] x', { at: '2026-01-30 01:13:16', who: 'DP1 TP3', level: '', message: 'x' }],
    ['[2026-01-30 01:13:16.250] x', { at: '2026-01-30 01:13:16.250', who: '', level: '', message: 'x' }],
    [
      '[2026-01-30 01:13:04] WARNING model_config.py:885: auto',
      { at: '2026-01-30 01:13:04', who: '', level: 'WARNING', message: 'auto' },
    ],
    [
      '(EngineCore_DP0 pid=77) INFO 10-17 09:33:49 [kv_cache_utils.py:1087] GPU KV cache size: 1 tokens',
      { at: '10-17 09:33:49', who: 'EngineCore_DP0', level: 'INFO', message: 'GPU KV cache size: 1 tokens' },
    ],
    ['INFO 12-19 06:17:49 model_runner.py:1527] Graph', { at: '12-19 06:17:49', who: '', level: 'INFO', message: 'Graph' }],
    [
      '(VllmWorker rank=0 pid=9) ERROR 12-19 06:17:49 [a.py:1] b',
      { at: '12-19 06:17:49', who: 'VllmWorker', level: 'ERROR', message: 'b' },
    ],
    ['engine-1  | [2026-01-30 01:13:16 TP0] x', { at: '2026-01-30 01:13:16', who: 'TP0', level: '', message: 'x' }],
    ['2026-06-04 12:30:37.525 | [2026-06-04 09:30:37] x', { at: '2026-06-04 09:30:37', who: '', level: '', message: 'x' }],
    ['2026-06-04T12:30:37.525Z [2026-06-04 09:30:37] x', { at: '2026-06-04 09:30:37', who: '', level: '', message: 'x' }],
    [
      'Apr 17 15:35:31 gpu-host bash[6277]: (APIServer pid=1) INFO 04-17 15:35:31 [l.py:2] x',
      { at: '04-17 15:35:31', who: 'APIServer', level: 'INFO', message: 'x' },
    ],
    ['[pod/engine-0/server] [2026-01-30 01:13:16] x', { at: '2026-01-30 01:13:16', who: '', level: '', message: 'x' }],
    ['3: [2026-01-30 01:13:16 TP3] x', { at: '2026-01-30 01:13:16', who: 'TP3', level: '', message: 'x' }],
    ['\u001b[32mINFO\u001b[0m 12-19 06:17:49 [a.py:1] x', { at: '12-19 06:17:49', who: '', level: 'INFO', message: 'x' }],
    ['plain text', { at: '', who: '', level: '', message: 'plain text' }],
  ])('%s', (raw, line) => {
    expect(peelLine(raw)).toEqual(line);
  });

  it('gives a result for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (raw) => {
        const { message } = peelLine(raw);
        expect(message.length).toBeLessThanOrEqual(raw.length);
      }),
    );
  });
});

it('splits where a terminal would show something new: line feeds and progress bars', () => {
  expect(splitLog('a\r\nb\rc\nd')).toEqual(['a', 'b', 'c', 'd']);
});
