/**
 * The rings of ARCHITECTURE.md as rules: imports point down, siblings only where the table says so, each outside library
 * has one owner. `scripts/boundaries.mjs` runs them and fails when the tool sees fewer modules than there are.
 */
const rings = [
  ['base'],
  ['host'],
  ['spec', 'engine', 'capacity', 'diagnosis', 'dataset', 'tokens', 'twin'],
  ['machine', 'ledger', 'shard', 'observe'],
  ['server', 'fleet', 'generation', 'delivery', 'tuning'],
  ['app'],
  ['cli', 'http', 'mcp', 'programs'],
];

const siblings = {
  capacity: ['engine'],
  diagnosis: ['engine', 'capacity'],
  dataset: ['spec'],
  twin: ['capacity'],
  fleet: ['server'],
  generation: ['fleet', 'server'],
  tuning: ['fleet', 'server'],
};

const owners = {
  'node_modules/(execa|undici)/|^(node:)?child_process$': 'host',
  'node_modules/@huggingface/hub/': 'host',
  'node_modules/hyparquet-writer/': 'delivery',
  'node_modules/@photostructure/sqlite/': 'ledger/sqlite',
  'node_modules/(csv-parse|hyparquet|hyparquet-compressors)/': 'dataset',
  'node_modules/yaml/': 'spec',
  'node_modules/@huggingface/(jinja|tokenizers)/': 'tokens',
  'node_modules/(pino|prom-client)/': 'observe',
  'node_modules/(hono|@hono)/': 'http|programs',
  'node_modules/node-llama-cpp/': 'programs',
  'node_modules/@modelcontextprotocol/': 'mcp',
  'node_modules/(@stricli|@clack|picocolors|log-update)/': 'cli',
  // What decides touches no disk: everything pure, generation, fleet and the surfaces.
  '^(node:)?fs(/promises)?$': 'host|machine|ledger|shard|dataset|server|delivery|app|programs',
};

const folder = (names) => `^src/(${names.join('|')})/`;
const notTests = '\\.test\\.ts$';
const rule = (name, from, to) => ({ name, severity: 'error', from: { pathNot: notTests, ...from }, to });

module.exports = {
  rings,
  forbidden: [
    rule('no-cycles', {}, { circular: true }),
    ...rings.flatMap((ring, i) =>
      ring.map((name) =>
        rule(
          `${name}-looks-down`,
          { path: folder([name]) },
          {
            path: folder([
              ...ring.filter((other) => other !== name && !(siblings[name] ?? []).includes(other)),
              ...rings.slice(i + 1).flat(),
              'nothing',
            ]),
          },
        ),
      ),
    ),
    rule(
      'surfaces-use-operations',
      { path: folder(['cli', 'http', 'mcp']) },
      { path: '^src/', pathNot: '^src/(cli|http|mcp|app|base|spec)/' },
    ),
    rule('nobody-imports-programs', { pathNot: '^src/programs/|\\.test\\.ts$' }, { path: '^src/programs/' }),
    rule('nobody-imports-main', {}, { path: '^src/(main|index)\\.ts$' }),
    ...Object.entries(owners).map(([library, owner]) =>
      rule(`only-${owner}`, { path: '^src/', pathNot: `^src/(${owner})/|\\.test\\.ts$` }, { path: library }),
    ),
  ],
  options: { tsPreCompilationDeps: true, tsConfig: { fileName: 'tsconfig.json' }, doNotFollow: { path: 'node_modules' } },
};
