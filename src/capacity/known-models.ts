/**
 * Shapes of well-known models, so that a plan works without the network. Pure.
 * What is shipped are the models' own config fields, read by the same reader as any other config: no number is written down twice.
 */
import { type Fields, isFields } from './config-fields.ts';
import { LATENT_MODELS } from './known-deepseek.ts';
import { OTHER_MODELS } from './known-others.ts';
import { QWEN_MODELS } from './known-qwen.ts';

/** Where the lines of the tables are from. */
const SOURCES: Readonly<Record<string, string>> = {
  aiconfigurator: 'config.json of the model, as kept in the public project aiconfigurator (2026-08-21)',
  'LLM-Prof': 'config.json of the model, as kept in the public project LLM-Prof',
  LLMServingSim: 'config.json of the model, as kept in the public project LLMServingSim (2026-08-21)',
  class: 'config.json of the model in public logs and ports, with the defaults of its published configuration class',
};

export interface KnownModel {
  readonly name: string;
  readonly config: Fields;
  readonly source: string;
}

interface Line {
  readonly name: string;
  readonly source: string;
  readonly fields: string;
}

const LINES: readonly Line[] = [LATENT_MODELS, QWEN_MODELS, OTHER_MODELS].flatMap((table) =>
  table.split('\n').flatMap((line): Line[] => {
    const [name, source, ...rest] = line.split(' | ');
    return name === undefined || source === undefined || rest.length === 0 ? [] : [{ name, source, fields: rest.join(' | ') }];
  }),
);

export const KNOWN_MODELS: readonly string[] = LINES.map(({ name }) => name);

/** The table's entry for a name on the hub; capitals do not count, and the owner may be left out where that leaves one. */
export function findKnownModel(name: string): KnownModel | undefined {
  const wanted = name.trim().toLowerCase();
  const whole = LINES.find((line) => line.name.toLowerCase() === wanted);
  const tails = LINES.filter((line) => line.name.toLowerCase().split('/')[1] === wanted);
  const line = whole ?? (tails.length === 1 ? tails[0] : undefined);
  if (line === undefined) return undefined;
  const fields = line.fields.startsWith('= ')
    ? (LINES.find((one) => one.name === line.fields.slice(2))?.fields ?? '')
    : line.fields;
  return { name: line.name, config: expandLists(JSON.parse(fields) as Fields, 0), source: SOURCES[line.source] ?? line.source };
}

/** `{"repeat": [a, b]}` → a, b, a, b … one for each layer. */
function expandLists(fields: Fields, outerLayers: number): Fields {
  const written = fields['num_hidden_layers'];
  const layers = typeof written === 'number' ? written : outerLayers;
  return Object.fromEntries(
    Object.entries(fields).map(([key, value]): [string, unknown] => {
      if (!isFields(value)) return [key, value];
      const cycle = value['repeat'];
      if (!Array.isArray(cycle)) return [key, expandLists(value, layers)];
      return [key, Array.from({ length: layers }, (_, at): unknown => cycle[at % cycle.length])];
    }),
  );
}
