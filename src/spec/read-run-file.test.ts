import { describe, expect, it } from 'vitest';
import { AerieError } from '../base/errors.ts';
import { readRunFile } from './read-run-file.ts';

const SMALLEST = 'run: r\nmodel: default\npartitions:\n  - name: B1\n    from: data/b1.jsonl\n';
const NO_LAUNCH = { setup: [], env: {}, command: '', workdir: '', log: '' };
const DEFAULT_ASK = {
  sampling: { temperature: 0.7, topP: 1, topK: 0, maxTokens: 2048, seed: 0, stop: [] },
  temperatureMixture: [],
  templateKwargs: {},
  extraBody: {},
};

describe('readRunFile', () => {
  it('fills in every default', () => {
    expect(readRunFile(SMALLEST, '/p/run.yaml')).toEqual({
      name: 'r',
      model: 'default',
      servers: [{ name: 'embedded-0', engine: 'embedded', flags: {}, port: 0, gpu: '', engineVersion: '', ...NO_LAUNCH }],
      policy: [],
      ...DEFAULT_ASK,
      partitions: [
        {
          name: 'B1',
          from: ['/p/data/b1.jsonl'],
          columns: {},
          budget: 0,
          limit: 0,
          turns: 'all',
          truncated: 'keep',
          continuations: 0,
          ask: DEFAULT_ASK,
        },
      ],
      attemptTimeoutMs: 0,
      patienceMs: 1_800_000,
      inFlight: 8,
      isInFlightGiven: false,
      isInFlightAuto: false,
      pricePerHour: 0,
      file: '/p/run.yaml',
      folder: '/p/runs/r',
      serverFolder: '/p/runs/r',
      text: SMALLEST,
    });
  });

  it('takes a launch of SGLang or vLLM with any flag, spelled as the engine spells it', () => {
    const server = `{ engine: sglang, gpu: H200, engine-version: 0.5.8, flags: { tp: 8, kv-cache-dtype: bf16, enable-hierarchical-cache: true, cuda-graph-bs: [1, 2] } }`;
    const run = readRunFile(`${SMALLEST.replace('default', 'org/m')}\nservers: [${server}]\nprice-per-hour: 14.5`, '/p/run.yaml');
    expect(run.pricePerHour).toBe(14.5);
    expect(run.servers[0]).toEqual({
      ...{ name: 'sglang-0', engine: 'sglang', port: 0, gpu: 'H200', engineVersion: '0.5.8', ...NO_LAUNCH },
      flags: { tp: 8, 'kv-cache-dtype': 'bf16', 'enable-hierarchical-cache': true, 'cuda-graph-bs': [1, 2] },
    });
  });

  it('takes what a launch needs, and keeps a secret as its name', () => {
    const text = `${SMALLEST.replace('default', 'org/m')}
in-flight: auto
servers:
  - engine: sglang
    setup: [source ~/venv/bin/activate, ulimit -n 65536]
    env: { HF_TOKEN: $HF_TOKEN, OTHER: "$HF_TOKEN/x", NCCL_DEBUG: INFO, THREADS: 8, CHECK: true, EMPTY: "" }
    command: >
      docker run --gpus all image
      python3 -m sglang.launch_server
    workdir: work
    log: /var/log/server.log
`;
    const run = readRunFile(text, '/p/run.yaml');
    expect([run.isInFlightAuto, run.isInFlightGiven, run.inFlight]).toEqual([true, false, 64]);
    expect(run.servers[0]).toMatchObject({
      setup: ['source ~/venv/bin/activate', 'ulimit -n 65536'],
      env: {
        HF_TOKEN: { secret: 'HF_TOKEN' },
        OTHER: { value: '$HF_TOKEN/x' },
        NCCL_DEBUG: { value: 'INFO' },
        THREADS: { value: '8' },
        CHECK: { value: 'true' },
        EMPTY: { value: '' },
      },
      command: 'docker run --gpus all image python3 -m sglang.launch_server',
      workdir: '/p/work',
      log: '/var/log/server.log',
    });
  });

  it('reads every key', () => {
    const text = `
run: r-1.x
model: org/m
servers:
  - { engine: vllm, attach: "http://gpu-1:8000/v1/", api-key: $VLLM_KEY, name: big }
  - { engine: vllm, attach: https://gpu-2/prefix }
policy:
  - { forbid: { kv-cache: below-16-bit }, because: it degrades, by: owner }
sampling: { temperature: 0, top-p: 0.95, top-k: 20, max-tokens: 8192, seed: 7, thinking: false,
            chat-template-kwargs: { depth: [1, { a: null }] }, extra-body: { repetition_penalty: 1.1 } }
partitions:
  - { name: B1, from: /abs/b1.jsonl, budget: 20M, limit: 20k, turns: all, truncated: keep }
  - { name: B2, from: ../b2.jsonl, budget: 20_000 }
in-flight: 12
attempt-timeout: 15m
patience: 2h
`;
    expect(readRunFile(text, '/p/q/run.yaml')).toMatchObject({
      servers: [
        {
          name: 'big',
          engine: 'vllm',
          attach: { kind: 'url', written: 'http://gpu-1:8000', url: 'http://gpu-1:8000' },
          apiKeyName: 'VLLM_KEY',
          flags: {},
          port: 0,
          gpu: '',
          engineVersion: '',
        },
        { name: 'vllm-1', attach: { kind: 'url', url: 'https://gpu-2/prefix' } },
      ],
      policy: [{ forbid: { kvCache: 'below-16-bit' }, because: 'it degrades', by: 'owner' }],
      sampling: { temperature: 0, topP: 0.95, topK: 20, maxTokens: 8192, seed: 7, stop: [] },
      templateKwargs: { enable_thinking: false, depth: [1, { a: null }] },
      extraBody: { repetition_penalty: 1.1 },
      partitions: [
        { from: ['/abs/b1.jsonl'], budget: 20_000_000, limit: 20_000 },
        { from: ['/p/b2.jsonl'], budget: 20_000 },
      ],
      inFlight: 12,
      attemptTimeoutMs: 900_000,
      patienceMs: 7_200_000,
    });
  });

  it('takes a .gguf path from the run file, and leaves names alone', () => {
    const model = (written: string, servers = '') =>
      readRunFile(SMALLEST.replace('default', written) + servers, '/p/run.yaml').model;
    expect(model('m/x.gguf')).toBe('/p/m/x.gguf');
    expect(model('hf:org/name/x.gguf')).toBe('hf:org/name/x.gguf');
    expect(model('org/name')).toBe('org/name');
    expect(model('served/x.gguf', 'servers: [{ engine: vllm, attach: "http://x:1" }]\n')).toBe('served/x.gguf');
  });

  it('is frozen all the way down', () => {
    const spec = readRunFile(`${SMALLEST}sampling: { extra-body: { a: { b: [1] } } }\n`, '/p/run.yaml');
    for (const part of [spec, spec.servers, spec.servers[0]?.flags, spec.sampling, spec.extraBody['a'], spec.partitions[0]]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  });

  it('knows anchors, byte order marks and Windows line ends', () => {
    const text = `\uFEFFrun: r\r\nmodel: default\r\npartitions:\r\n  - name: B1\r\n    from: &f b.jsonl\r\n  - name: B2\r\n    from: *f\r\n`;
    expect(readRunFile(text, '/p/run.yaml').partitions[1]?.from).toEqual(['/p/b.jsonl']);
    expect(evidenceOf(`\uFEFFrun: r\r\nmodle: default\r\npartitions:\r\n  - {name: B1, from: b}\r\n`)).toEqual([
      'run.yaml:2:1  modle  is no key of a run file; did you mean model?',
    ]);
  });
});

describe('a file with mistakes', () => {
  it('is answered with all of them, in order, and with what to do', () => {
    const error = failureOf('run: .x\nmodel: default\npartitions:\n  - name: B1\n    form: a.jsonl\nin-flight: 0\n');
    expect(error.code).toBe('run-file.wrong');
    expect(error.message).toBe('run.yaml has 3 mistakes.');
    expect(error.detail.remedy).toBe('Correct them in run.yaml and give the same command again. Nothing was started.');
    expect(error.detail.facts).toEqual({ mistakes: 3, line: 1, column: 6 });
    expect(error.detail.evidence).toEqual([
      'run.yaml:1:6  run  must have 1 to 64 of the characters A-Z a-z 0-9 . _ - and must not start with a dot: it becomes a folder name',
      'run.yaml:5:5  partitions[0].form  is no key of a run file; did you mean from?',
      'run.yaml:6:12  in-flight  is 0; it must be a whole number from 1 to 4096, or auto',
    ]);
  });

  it('counts one mistake as one', () => {
    const error = failureOf(SMALLEST.replace('B1', '1'));
    expect(error.message).toBe('run.yaml has 1 mistake.');
    expect(error.detail.evidence).toEqual([
      'run.yaml:4:11  partitions[0].name  is 1; it must be text: write "1" with the quotes',
    ]);
  });

  it.each([
    [
      'servers: [{ engine: openai }]',
      'servers[0].engine  is openai, which needs attach: http://HOST:PORT beside it; it is always a server that is already there',
    ],
    [
      'servers: [{ engine: embedded, gpu: H200 }]',
      'servers[0].gpu  is for sglang and vllm; the embedded engine comes with Aerie and works on the CPU',
    ],
    [
      'servers: [{ engine: vllm, flags: { tp: { a: 1 } } }]',
      'servers[0].flags.tp  is a map; it must be what stands behind the flag: text, a number, true or false, or a list of these',
    ],
    ['price-per-hour: -1', 'price-per-hour  is -1; it must be above 0 and at most 100000'],
    ['servers: [{ engine: embeded }]', 'servers[0].engine  is "embeded"; it must be embedded or vllm or sglang or openai'],
    [
      'servers: [{ attach: "http://x" }]',
      'servers[0].engine  is missing: embedded: the small engine that comes with Aerie. vllm, sglang: launched with flags, or already there (attach). openai: any endpoint with chat completions (needs attach); it gives text only, so its records are not exact.',
    ],
    [
      'servers: [{ engine: embedded, attach: "http://x", flags: { tp: 8 } }]',
      'servers[0].flags  are for a server that Aerie launches; this one has the flags it was started with, so leave them out',
    ],
    [
      'servers: [{ engine: embedded, attach: "http://x", port: 8000 }]',
      'servers[0].port  is for a server that Aerie launches; the port of this one is part of attach',
    ],
    [
      'servers: [{ engine: embedded, api-key: $K }]',
      'servers[0].api-key  is for a server that is already there (attach); one that Aerie launches needs no key',
    ],
    [
      'servers: [{ engine: vllm, attach: "ftp://box:8000" }]',
      'servers[0].attach  must be http://HOST:PORT, https://…, ssh://BOX:PORT (the port of the server on that machine) or docker://NAME',
    ],
    ...['ssh://box', 'ssh://box:0', 'ssh://box:70000', 'ssh://-oProxyCommand=x:1', 'ssh://box:1/path'].map(
      (attach): [string, string] => [
        `servers: [{ engine: vllm, attach: "${attach}" }]`,
        'servers[0].attach  must name the machine and the port of the server on it, as ssh://gpu-box:30000; users, keys and ports of ssh belong into your ssh config',
      ],
    ),
    [
      'servers: [{ engine: vllm, attach: "docker://a b" }]',
      'servers[0].attach  is no container; write docker://NAME, as docker ps shows it',
    ],
    [
      'servers: [{ engine: vllm, attach: "ssh://box:1", machine: box }]',
      'servers[0].machine  says the machine, and attach: ssh://box:1 says it too; leave machine: out',
    ],
    ...['-oProxyCommand=x', 'a b', '$(x)', 'box:22', 'u@', ''].map((machine): [string, string] => [
      `servers: [{ engine: vllm, machine: "${machine}" }]`,
      'servers[0].machine  must be an ssh name, as gpu-box or ssh://root@gpu-box; more belongs into your ssh config',
    ]),
    [
      'servers: [{ engine: vllm, machine: { outer: x } }]',
      'servers[0].machine  is a map; it must be an ssh name, as ssh://root@gpu-box, or a map with ssh: and outer:',
    ],
    [
      'servers: [{ engine: vllm, machine: box, workdir: x }]',
      'servers[0].workdir  is relative to this file, which is not on that machine; write a path that begins with /',
    ],
    [
      'servers: [{ engine: embedded, attach: "http://u:secret@x" }]',
      'servers[0].attach  holds a user or password; name the key with api-key: $NAME instead',
    ],
    [
      'servers: [{ engine: embedded, attach: "http://x", api-key: secret }]',
      'servers[0].api-key  must be the name of an environment variable with a dollar sign, as $VLLM_KEY; the key itself never stands in a run file',
    ],
    ['servers: [{ engine: embedded, flags: { kv-type: q4_0 } }]', 'servers[0].flags.kv-type  is "q4_0"; it must be f16 or q8_0'],
    [
      'servers: [{ engine: embedded, flags: { seqences: 4 } }]',
      'servers[0].flags.seqences  is no key of a run file; did you mean sequences?',
    ],
    [
      'servers: [{ engine: embedded, flags: { tp: 4 } }]',
      'servers[0].flags.tp  is no key of a run file here; the keys are sequences, context, kv-type, threads',
    ],
    [
      'servers: [{ engine: embedded, machine: "ssh://x" }]',
      'servers[0].machine  is for sglang and vllm; the embedded engine comes with Aerie and works on the CPU',
    ],
    ['servers: { engine: embedded }', 'servers  is a map; it must be a list (lines that begin with a dash)'],
    ['servers: []', 'servers  is an empty list; it needs at least one entry'],
    [
      'servers: [{ engine: embedded }, { engine: embedded, name: Embedded-0 }]',
      'servers[1].name  is "Embedded-0", which servers[0] is called already (capitals do not count); each needs its own name',
    ],
    [
      'servers: [{ engine: embedded, flags: { context: 512 } }]\nsampling: { max-tokens: 512 }',
      'sampling.max-tokens  is 512, but servers[0].flags.context is 512 tokens for prompt and answer together; it must be smaller than that',
    ],
    ['policy:', 'policy  has nothing after it; write a value, or leave the line out'],
    [
      'policy: [{ forbid: { kv-cache: fp8 }, because: x, by: y }]',
      'policy[0].forbid.kv-cache  is "fp8"; it must be below-16-bit or below-8-bit',
    ],
    [
      'policy: [{ because: x, by: y }]',
      'policy[0]  must have exactly one of forbid, require, min, max; it has none of them, so write a rule for each',
    ],
    [
      'policy: [{ min: { pool: 5 }, max: { pool: 9 }, because: x, by: y }]',
      'policy[0]  must have exactly one of forbid, require, min, max; it has min and max, so write a rule for each',
    ],
    [
      'policy: [{ min: {}, because: x, by: y }]',
      'policy[0].min  is empty; write what the rule is about, as kv-cache: below-16-bit',
    ],
    ['sampling: { temperature: 2.1 }', 'sampling.temperature  is 2.1; it must be from 0 to 2'],
    ['sampling: { top-p: 0 }', 'sampling.top-p  is 0; it must be above 0 and at most 1'],
    ['sampling: { max-tokens: 8k }', 'sampling.max-tokens  is "8k"; it must be a whole number from 1 to 1048576: write 8000'],
    ['sampling: { top-k: 1.5 }', 'sampling.top-k  is 1.5; it must be a whole number from 0 to 1000000'],
    ['sampling: { thinking: yes }', 'sampling.thinking  is "yes"; it must be true or false: write true'],
    ['sampling: { extra-body: { n: 2 } }', 'sampling.extra-body.n  is a field that Aerie sets itself: each turn has one answer'],
    ['sampling: { extra-body: { x: [.inf] } }', 'sampling.extra-body.x[0]  is a number that a request cannot carry exactly'],
    [
      'sampling: { extra-body: { x: 12345678901234567890 } }',
      'sampling.extra-body.x  is a number that a request cannot carry exactly',
    ],
    [
      'sampling: { thinking: true, chat-template-kwargs: { enable_thinking: true } }',
      'sampling.chat-template-kwargs.enable_thinking  is said already by sampling.thinking; keep one of them',
    ],
    ['in-flight: 4097', 'in-flight  is 4097; it must be a whole number from 1 to 4096, or auto'],
    ['in-flight: Auto', 'in-flight  is "Auto"; it must be a whole number from 1 to 4096, or auto'],
    ['in-flight: [auto]', 'in-flight  is a list; it must be a whole number from 1 to 4096, or auto'],
    ...['setup: [x]', 'env: { A: secret }', 'command: x', 'workdir: x'].flatMap((key): [string, string][] => [
      [
        `servers: [{ engine: vllm, attach: "http://x", ${key} }]`,
        `servers[0].${key.split(':')[0]}  is for a server that Aerie launches; this one is there already, so leave it out`,
      ],
      [
        `servers: [{ engine: embedded, ${key} }]`,
        `servers[0].${key.split(':')[0]}  is for sglang and vllm; the embedded engine comes with Aerie and works on the CPU`,
      ],
    ]),
    [
      'servers: [{ engine: sglang, env: { "HF_TOKEN=secret": 1 } }]',
      'servers[0].env  has a key that is no name of an environment variable; write NAME: value with letters, digits and _ in the name, or NAME: $NAME',
    ],
    ...['"two\\nsecret"', '"secret\\0"', '[secret]', '{ secret: 1 }', '.nan'].map((value): [string, string] => [
      `servers: [{ engine: sglang, env: { HF_TOKEN: ${value} } }]`,
      'servers[0].env.HF_TOKEN  is something else; it must be text on one line, or $NAME for what the environment variable NAME holds',
    ]),
    [
      'servers: [{ engine: sglang, env: { HF_TOKEN: } }]',
      'servers[0].env.HF_TOKEN  has nothing after it; write a value, or leave the line out',
    ],
    [
      'servers: [{ engine: sglang, env: [HF_TOKEN=secret] }]',
      'servers[0].env  is something else; it must be a map (lines of key: value)',
    ],
    [
      'servers: [{ engine: sglang, env: { AERIE_LAUNCH: secret } }]',
      'servers[0].env.AERIE_LAUNCH  is a variable that Aerie sets itself',
    ],
    ['servers: [{ engine: sglang, env: { __proto__: secret } }]', 'a key here is no plain word; write it in letters'],
    ['servers: [{ engine: vllm, setup: ["a\\0b"] }]', 'servers[0].setup[0]  must be lines for a shell, and not empty'],
    [
      'servers: [{ engine: vllm, setup: source x }]',
      'servers[0].setup  is "source x"; it must be a list (lines that begin with a dash)',
    ],
    ['servers: [{ engine: vllm, command: "a\\nb" }]', 'servers[0].command  must be one line for a shell, and not empty'],
    ['servers: [{ engine: vllm, command: " " }]', 'servers[0].command  must be one line for a shell, and not empty'],
    [
      'servers: [{ engine: vllm, workdir: ~/x }]',
      'servers[0].workdir  begins with ~, which only a shell understands; write the path out',
    ],
    ['servers: [{ engine: vllm, log: "x\\0" }]', 'servers[0].log  must be a path on one line'],
    ['patience: 30', 'patience  is 30; it must be text with a unit: write 30s, or 30m'],
    ['patience: soon', 'patience  must be a time with its unit, as 90s, 15m or 2h'],
    ['max-tokens: 3', 'max-tokens  belongs under sampling, not here'],
    [
      'foo: 3',
      'foo  is no key of a run file here; the keys are run, model, servers, policy, sampling, partitions, attempt-timeout, patience, in-flight, price-per-hour',
    ],
    [
      '"a\\e[2J": 3',
      '"a\\u001b[2J"  is no key of a run file here; the keys are run, model, servers, policy, sampling, partitions, attempt-timeout, patience, in-flight, price-per-hour',
    ],
    ['run: again', 'run  is written twice, first on line 1; keep one of them'],
  ])('%s', (line, sentence) => {
    const evidence = evidenceOf(`${/vllm|sglang|openai/.test(line) ? SMALLEST.replace('default', 'org/m') : SMALLEST}${line}\n`);
    expect(evidence.map((said) => said.replace(/^run\.yaml:\d+:\d+ {2}/, ''))).toEqual([sentence]);
    expect(evidence.join()).not.toContain('secret');
  });

  it.each([
    [
      'budget: 20X',
      'budget  is "20X"; it must be a whole number of tokens from 1 up, as 500000, 500k or 20M; leave it out for no budget',
    ],
    [
      'budget: 0',
      'budget  is 0; it must be a whole number of tokens from 1 up, as 500000, 500k or 20M; leave it out for no budget',
    ],
    ['limit: 1.5', 'limit  is 1.5; it must be a whole number of prompts from 1 up, as 20000 or 20k; leave it out for all'],
    ['limit: [1]', 'limit  is a list; it must be a whole number of prompts from 1 up, as 20000 or 20k; leave it out for all'],
    ['turns: first', 'turns  is "first"; it must be all or last'],
    ['truncated: cut', 'truncated  is "cut"; it must be keep or drop or continue'],
    ['continuations: 3', 'continuations  means something only beside truncated: continue'],
    [
      'truncated: continue\n    sampling: { stop: ["x"] }',
      'truncated  is continue, which cannot stand beside sampling.stop: a stop text that lies across two requests would not be seen',
    ],
    [
      'truncated: continue\n    sampling: { extra-body: { min_p: 0.1, presence_penalty: 1 } }',
      'truncated  is continue, which cannot stand beside sampling.extra-body.presence_penalty: it would begin anew with each request (only min_p, logit_bias, stop_token_ids go on)',
    ],
    ['sampling: { temprature: 1 }', 'sampling.temprature  is no key of a run file; did you mean temperature?'],
    ['sampling: { temperature: 3 }', 'sampling.temperature  is 3; it must be from 0 to 2'],
    ['sampling: { extra-body: { stop: a } }', 'sampling.extra-body.stop  is a field that Aerie sets itself: write sampling.stop'],
    [
      'sampling: { temperature-mixture: [{ temperature: 0, share: 0.6 }, { temperature: 1, share: 0.5 }] }',
      'sampling.temperature-mixture  has shares that add up to more than 1; what is left of 1 is asked with temperature',
    ],
    ['weight: 2', 'weight  is for a later version of Aerie; this one does not know it, so leave it out'],
  ])('of a partition: %s', (line, sentence) => {
    const evidence = evidenceOf(`${SMALLEST}    ${line}\n`);
    expect(evidence.map((said) => said.replace(/^run\.yaml:6:\d+ {2}partitions\[0\]\./, ''))).toEqual([sentence]);
  });

  it('does not name the misspelt key a second time as missing', () => {
    const said = evidenceOf(SMALLEST.replace('default', 'org/m').concat('servers: [{ engine: vllm, atach: "http://x" }]\n'));
    expect(said).toEqual(['run.yaml:6:27  servers[0].atach  is no key of a run file; did you mean attach?']);
  });

  it('knows that default is no name of a vllm model', () => {
    expect(evidenceOf(`${SMALLEST}servers: [{ engine: vllm, attach: "http://x" }]\n`)).toEqual([
      'run.yaml:2:8  model  is default, the small model of the embedded engine; write the name under which the vllm server serves its model',
    ]);
  });

  it('takes no ~ for a model that Aerie launches, and any name for one that is there', () => {
    const lines = (model: string, server: string) =>
      evidenceOf(`run: r\nmodel: ${model}\nservers: [${server}]\npartitions: [{ name: B1, from: b.jsonl }]\n`);
    const says = 'begins with ~, which only a shell understands; write the path out, as it is on the machine of the server';
    expect(lines('~/models/k', '{ engine: sglang, machine: gpu-box }')).toEqual([`run.yaml:2:8  model  ${says}`]);
    expect(lines('k', '{ engine: vllm, flags: { model: ~/k, served-model-name: k } }')).toEqual([
      `run.yaml:3:43  servers[0].flags.model  ${says}`,
    ]);
    expect(lines('~/models/k', '{ engine: sglang, attach: http://gpu-1:30000, api-kez: $K }')).toHaveLength(1);
  });

  it('says of a source what can be read', () => {
    const from = (written: string) => evidenceOf(SMALLEST.replace('data/b1.jsonl', written))[0]?.split('  ')[2];
    expect(from('hf://datasets/x')).toBe(
      'is no file of a data set on the hub; write it as hf://datasets/OWNER/NAME/data/train-*.parquet, with @REVISION after NAME for another than main',
    );
    expect(from('~/b1.jsonl')).toBe('begins with ~, which only a shell understands; write the path out');
    expect(from('" "')).toBe('is empty text');
  });
});

function failureOf(text: string): AerieError {
  try {
    readRunFile(text, 'run.yaml');
  } catch (thrown) {
    if (thrown instanceof AerieError) return thrown;
    throw thrown;
  }
  throw new Error('the file was accepted');
}

function evidenceOf(text: string): readonly string[] {
  return failureOf(text).detail.evidence ?? [];
}
