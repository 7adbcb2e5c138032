/** What the dialects read out of a server's account of itself; what is missing stays unknown and is never guessed. */
import { expect, test } from 'vitest';
import { ENGINES } from './dialect.ts';
import { dialectOf } from './dialects.ts';

const UNKNOWN = {
  ...{ model: '', revision: '', engineVersion: '', weights: 'unknown', kvCacheDtype: 'unknown', templateHash: '' },
  ...{ contextTokens: 0, vocabularySize: 0, stopIds: [], sequences: 0 },
};

test('the embedded engine tells everything', () => {
  const info = {
    ...{ served_model_name: 'm', model_path: '/x', revision: 'r', version: '1.2', weights: 'Q4_1', kv_cache_dtype: 'f16' },
    ...{ template_hash: 'h', context_length: 4096, vocab_size: 49_152, stop_token_ids: [2, -1, 'x'], max_running_requests: 8 },
  };
  expect(dialectOf('embedded').parseFacts([{ status: 200, body: JSON.stringify(info) }])).toEqual({
    ...{ model: 'm', revision: 'r', engineVersion: '1.2', weights: 'Q4_1', kvCacheDtype: 'f16', templateHash: 'h' },
    ...{ contextTokens: 4096, vocabularySize: 49_152, stopIds: [2], sequences: 8 },
  });
});

test('vLLM tells its model, its version and its context', () => {
  const models = JSON.stringify({ data: [{ id: 'm', max_model_len: 8192 }] });
  const facts = dialectOf('vllm').parseFacts([
    { status: 200, body: models },
    { status: 200, body: '{"version":"0.11.0"}' },
  ]);
  expect(facts).toEqual({ ...UNKNOWN, model: 'm', engineVersion: '0.11.0', contextTokens: 8192 });
});

test.each(ENGINES.map((name) => [name]))(
  '%s: an account that is empty, cut or of another shape leaves everything unknown',
  (name) => {
    const dialect = dialectOf(name);
    for (const body of ['', '{', '[]', 'null', '{"data":{}}', '{"data":[3]}', '{"vocab_size":-5,"context_length":1.5}']) {
      expect(dialect.parseFacts(dialect.factRequests.map(() => ({ status: 200, body })))).toEqual(UNKNOWN);
    }
    expect(dialect.parseFacts([])).toEqual(UNKNOWN);
  },
);

test.each(ENGINES.map((name) => [name]))('%s: only the status of health counts, and ids are decoded in vLLM’s shape', (name) => {
  const dialect = dialectOf(name);
  expect([200, 503, 404, 500].map((status) => dialect.isReady(status))).toEqual([true, false, false, false]);
  expect(dialect.exactness({ ...UNKNOWN, stopIds: [] })).toEqual({ exact: true, because: '' });
  expect(dialect.renderDetokenize([1, 2])).toEqual({ method: 'POST', path: '/detokenize', body: '{"tokens":[1,2]}' });
  expect(dialect.readDetokenize({ status: 200, body: '{"prompt":"ab"}' })).toBe('ab');
  for (const reply of [
    { status: 404, body: '{"prompt":"ab"}' },
    { status: 200, body: '{' },
    { status: 200, body: '{"prompt":1}' },
  ]) {
    expect(dialect.readDetokenize(reply)).toBeUndefined();
  }
});
