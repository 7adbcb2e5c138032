import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readRunFile } from './read-run-file.ts';
import { renderStarter, type Starter } from './starter.ts';

const PLAIN: Starter = {
  schema: 'https://example.org/run.schema.json',
  run: 'first',
  model: 'default',
  engine: 'embedded',
  partition: 'B1',
  from: 'prompts.jsonl',
  maxTokens: 256,
};

describe('renderStarter', () => {
  it('begins with the line that editors look for', () => {
    expect(renderStarter(PLAIN).split('\n')[0]).toBe('# yaml-language-server: $schema=https://example.org/run.schema.json');
  });

  it('is a run file, for both engines', () => {
    expect(readRunFile(renderStarter(PLAIN), '/p/run.yaml')).toMatchObject({
      name: 'first',
      sampling: { maxTokens: 256 },
      inFlight: 8,
    });
    const vllm = renderStarter({ ...PLAIN, engine: 'vllm', model: 'org/m', attach: 'http://gpu-1:8000', budget: '20M' });
    expect(readRunFile(vllm, '/p/run.yaml')).toMatchObject({
      model: 'org/m',
      servers: [{ attach: { kind: 'url', url: 'http://gpu-1:8000' } }],
      partitions: [{ budget: 20_000_000 }],
    });
  });

  it.each(['vllm', 'sglang', 'openai'] as const)('is one for %s, and with its key', (engine) => {
    const text = renderStarter({ ...PLAIN, engine, model: 'org/m', attach: 'https://gpu-1/base' });
    const spec = readRunFile(text.replace('# api-key:', 'api-key:'), '/p/run.yaml');
    expect(spec).toMatchObject({ servers: [{ engine, attach: { kind: 'url', url: 'https://gpu-1/base' } }], inFlight: 64 });
    expect(spec.servers[0]?.apiKeyName).toMatch(/_KEY$/);
  });

  it.each(['vllm', 'sglang'] as const)('launches %s on another machine, with and without its suggestions', (engine) => {
    const text = renderStarter({ ...PLAIN, engine, model: 'org/m', machine: 'root@gpu-box' });
    expect(readRunFile(text, '/p/run.yaml')).toMatchObject({
      servers: [{ engine, machine: { ssh: 'root@gpu-box' }, setup: [] }],
      inFlight: 64,
    });
    const taken = text.replaceAll(/^ {4}# ((?:flags|setup|gpu|env): )/gm, '    $1');
    const setup = ['source ~/venv/bin/activate'];
    expect(readRunFile(taken, '/p/run.yaml').servers).toMatchObject([{ engine, setup, gpu: 'H200' }]);
  });

  it('is still one when every suggestion in it is taken', () => {
    const taken = renderStarter(PLAIN)
      .replaceAll(/^( *)# ((?: {2,4})?(?:- )?[a-z-]+: )/gm, '$1$2')
      .replace('yaml-language-server', '# yaml-language-server');
    const spec = readRunFile(taken.replace('# policy:', 'policy:').replace(/^One generation/m, '# One'), '/p/run.yaml');
    expect(spec).toMatchObject({
      policy: [{ by: 'model owner' }],
      servers: [{ flags: { sequences: 8, context: 4096 } }],
      partitions: [{ budget: 20_000_000, limit: 20_000 }],
    });
  });

  it('keeps whatever text it is given', () => {
    const line = fc
      .string({ unit: 'grapheme', minLength: 1, maxLength: 40 })
      .filter((text) => /\S/.test(text) && !/^~|^[a-z][a-z0-9+.-]+:\/\//i.test(text));
    fc.assert(
      fc.property(line, line, (model, from) => {
        const spec = readRunFile(renderStarter({ ...PLAIN, model: `${model}#`, from: `/d/${from}x` }), '/p/run.yaml');
        expect(spec.model).toBe(`${model}#`);
        expect(spec.partitions[0]?.from[0]?.endsWith('x')).toBe(true);
      }),
    );
  });
});
