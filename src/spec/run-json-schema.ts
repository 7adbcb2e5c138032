/**
 * The run file's schema as JSON Schema: for editors (`schemas/run.schema.json`), and for the reader's own sentences,
 * which look up ranges, descriptions and known keys by path. Pure.
 */
import { z } from 'zod';
import type { Path } from './problem.ts';
import { runFile } from './run-file.ts';

/** The part of JSON Schema that our own schema makes use of. */
export interface SchemaNode {
  readonly description?: string;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, SchemaNode>>;
  readonly items?: SchemaNode;
  readonly enum?: readonly string[];
  readonly const?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
}

let made: SchemaNode | undefined;

export function renderRunJsonSchema(): string {
  return `${JSON.stringify(z.toJSONSchema(runFile, { io: 'input' }), undefined, 2)}\n`;
}

/** The schema at a path, or undefined below free maps and unknown keys. */
export function findSchema(path: Path): SchemaNode | undefined {
  made ??= JSON.parse(renderRunJsonSchema()) as SchemaNode;
  let node: SchemaNode | undefined = made;
  for (const step of path) node = typeof step === 'number' ? node?.items : ownProperty(node, step);
  return node;
}

function ownProperty(node: SchemaNode | undefined, key: string): SchemaNode | undefined {
  return node?.properties !== undefined && Object.hasOwn(node.properties, key) ? node.properties[key] : undefined;
}

/** Keys that may stand in the map at a path. */
export function knownKeys(path: Path): string[] {
  return Object.keys(findSchema(path)?.properties ?? {});
}

/** Where else a key is known, as `sampling`, for one that was written at the wrong depth. */
export function findHome(key: string): string | undefined {
  const homes = { '': [], sampling: ['sampling'], servers: ['servers', 0], partitions: ['partitions', 0] } as const;
  for (const [home, path] of Object.entries(homes)) if (knownKeys(path).includes(key)) return home;
  return knownKeys(['servers', 0, 'flags']).includes(key) ? 'flags' : undefined;
}
