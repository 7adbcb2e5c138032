import { describe, expect, it } from 'vitest';
import { LogFactsReader } from '../diagnosis/log-facts.ts';
import { checkRemedy } from './check-remedy.ts';

/** The story's first launch: it started with 0.82 GiB left and died at a large prefill. */
function logOf(fraction: string, model = 'moonshotai/Kimi-K2.5') {
  const reader = new LogFactsReader();
  for (const line of [
    `[2026-01-30 01:13:04] server_args=ServerArgs(model_path='${model}', tp_size=8, mem_fraction_static=${fraction}, kv_cache_dtype='bf16')`,
    '[2026-01-30 01:13:16 TP0] Load weight begin. avail mem=94.04 GB',
    '[2026-01-30 01:14:42 TP0] Load weight end. type=K, dtype=torch.bfloat16, avail mem=21.71 GB, mem usage=72.33 GB.',
  ])
    reader.add(line);
  return reader.read();
}

describe('checkRemedy', () => {
  const to = (value: number) => ({ text: 'Lower the memory fraction.', flag: '--mem-fraction-static', value: String(value) });

  it('says what the launch then holds, by the figures of the log', () => {
    expect(checkRemedy(to(0.88), logOf('0.93'))).toMatch(/it then holds 15[789],\d\d\d tokens and leaves [345]\.\d GiB/); // the newest version, which the log does not name, keeps 0.1 GiB for images
  });

  it('says so where the remedy is not enough', () => {
    expect(checkRemedy(to(0.7), logOf('0.60'))).toMatch(/is not enough: the weights leave no memory/);
  });

  it('finds a model by its folder, and says nothing of one it does not know', () => {
    expect(checkRemedy(to(0.88), logOf('0.93', '/models/moonshotai/Kimi-K2.5'))).toMatch(/^By the log/);
    expect(checkRemedy(to(0.88), logOf('0.93', '/models/our-own'))).toBeUndefined();
  });

  it('tries no flag whose value is left to the person', () => {
    const without = (flag: string) => checkRemedy({ text: 'Less of it.', flag, value: '' }, logOf('0.93'));
    expect(['--hicache-size', '--mem-fraction-static', '--kv-cache-dtype'].map(without)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(without('--disable-cuda-graph')).toMatch(/^By the log’s own figures/);
  });

  it('says nothing where the remedy is no flag, or the log has no figures', () => {
    expect(checkRemedy({ text: 'Free the GPU.', flag: '', value: '' }, logOf('0.93'))).toBeUndefined();
    expect(checkRemedy(to(0.88), new LogFactsReader().read())).toBeUndefined();
  });
});
