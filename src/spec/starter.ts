/**
 * The first run file of a project, for `aerie init`: short enough to read, with what can be changed beside it. Pure.
 * Promises: `readRunFile` accepts it, whatever text the arguments hold.
 */

/** Engines that Aerie attaches to. */
export type AttachedEngine = 'vllm' | 'sglang' | 'openai';

export interface Starter {
  /** Path or URL of run.schema.json, for the completion of keys in an editor. */
  readonly schema: string;
  readonly run: string;
  readonly model: string;
  readonly engine: 'embedded' | AttachedEngine;
  /** Address of a server that is already there; one of the two for all but embedded. */
  readonly attach?: string;
  /** What is typed after `ssh`: Aerie launches the engine there. */
  readonly machine?: string;
  readonly partition: string;
  /** Path of the prompts, relative to where the run file will lie. */
  readonly from: string;
  /** Generated tokens, as `20M`; left out: no budget. */
  readonly budget?: string;
  readonly maxTokens: number;
}

export function renderStarter(starter: Starter): string {
  return [
    `# yaml-language-server: $schema=${starter.schema.replaceAll(/\s/g, '%20')}`,
    '# One generation run. Start it, and resume it after any stop, with: aerie run FILE',
    '',
    `run: ${renderText(starter.run)}`,
    `model: ${renderText(starter.model)}${starter.model === 'default' ? '  # a small model; or the path of a .gguf file' : ''}`,
    '',
    'servers:',
    ...renderServer(starter),
    '',
    '# What nobody may do, and why. Checked before a launch and on the running server.',
    '# policy:',
    '#   - forbid: { kv-cache: below-16-bit }',
    '#     because: a coarser KV cache changes what the model answers',
    '#     by: model owner',
    '',
    '# How tokens are chosen. Fixed once the run has begun.',
    'sampling:',
    '  temperature: 0.7   # 0 to 2; 0 always takes the likeliest token',
    '  top-p: 1           # 1 = off',
    '  top-k: 0           # 0 = off',
    `  max-tokens: ${starter.maxTokens}   # most tokens of one answer`,
    '  seed: 0',
    '  # thinking: true                                  # where the chat template knows enable_thinking',
    '  # extra-body: { repetition_penalty: 1.05 }        # any other field, spelled as the engine spells it',
    '',
    'partitions:',
    `  - name: ${renderText(starter.partition)}`,
    `    from: ${renderText(starter.from)}   # relative to this file`,
    starter.budget === undefined
      ? '    # budget: 20M      # generated tokens'
      : `    budget: ${renderText(starter.budget)}   # generated tokens`,
    '    # limit: 20k       # most prompts to take from the file',
    '',
    `# in-flight: ${starter.engine === 'embedded' ? 8 : 64}        # requests at a time over all servers`,
    '',
  ].join('\n');
}

const KEY_NAME = { embedded: 'KEY', vllm: 'VLLM_KEY', sglang: 'SGLANG_KEY', openai: 'OPENAI_API_KEY' } as const;

function renderServer(starter: Starter): string[] {
  const note = starter.engine === 'openai' ? '   # text only: records are not exact' : '';
  const engine = `  - engine: ${starter.engine}${note}`;
  if (starter.attach !== undefined) {
    return [
      engine,
      `    attach: ${renderText(starter.attach)}   # already there; Aerie never stops it`,
      `    # api-key: $${KEY_NAME[starter.engine]}   # the name of an environment variable, never the key`,
      ...renderLaunch(starter.engine),
    ];
  }
  if (starter.machine !== undefined) return [engine, ...renderElsewhere(starter.engine, starter.machine)];
  return [
    `${engine}   # Aerie launches it on this machine, no GPU needed`,
    '    # flags: { sequences: 8, context: 4096, kv-type: f16, threads: 4 }',
  ];
}

/** For whoever wants Aerie to launch it instead. */
function renderLaunch(engine: Starter['engine']): string[] {
  if (engine !== 'sglang' && engine !== 'vllm') return [];
  return [
    '    # Aerie launches it where attach: is left out. Try it before: aerie plan FILE, aerie rehearse FILE',
    '    # machine: gpu-box              # there, by ssh; left out: on this machine',
    ...renderLevers(engine),
  ];
}

/** A launch on a machine behind ssh. */
function renderElsewhere(engine: Starter['engine'], machine: string): string[] {
  return [
    `    machine: ${renderText(machine)}   # as you type it after ssh; Aerie launches the engine there and installs nothing`,
    ...renderLevers(engine),
    '    # env: { HF_TOKEN: $HF_TOKEN }  # a secret by name; its value is written nowhere',
  ];
}

function renderLevers(engine: Starter['engine']): string[] {
  const flags = engine === 'vllm' ? 'tensor-parallel-size: 8, gpu-memory-utilization: 0.9' : 'tp: 8, mem-fraction-static: 0.85';
  return [
    `    # flags: { ${flags} }   # as the engine spells them`,
    '    # setup: [source ~/venv/bin/activate]   # shell lines before the launch: the environment that has the engine',
    '    # gpu: H200                     # for plans; engine-version: too',
  ];
}

/** Plain where nothing about it is special to YAML, else in double quotes, which YAML reads as JSON does. */
function renderText(text: string): string {
  const isPlain = /^[A-Za-z][\w./-]*(:\/\/[\w./:-]*\w)?$/.test(text) && !/^(true|false|null|nan|inf)$/i.test(text);
  const quoted = JSON.stringify(text).replaceAll(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffd]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return isPlain ? text : quoted;
}
