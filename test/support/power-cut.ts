/**
 * What a power cut leaves of a folder, worked out from the trace of the process that wrote it. The strictest reading of
 * POSIX: of a file only what was written before its last completed fsync began; of a name only what its folder's
 * last completed fsync saw. A real disk keeps more, never less.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import type { FileCall } from './file-trace.ts';

interface Node {
  readonly kind: 'file' | 'folder';
  content: Buffer;
  durable: Buffer;
  children: Map<string, Node>;
  durableChildren: Map<string, Node>;
}

/** The folder `root` with only its entry `name` in it, as it is now, all of it durable. Taken before the traced process starts. */
export function snapshot(root: string, name: string): Node {
  const tree = newNode('folder');
  const child = existsSync(join(root, name)) ? readTree(join(root, name)) : undefined;
  if (child !== undefined) adopt(tree, name, child);
  return tree;
}

/** Replays the calls on the snapshot and puts what has survived in the place of `name`. Logs stay: they are what people have seen. */
export function cutPower(root: string, name: string, before: Node, calls: readonly FileCall[]): { readonly lostBytes: number } {
  replay(root, name, before, calls);
  const logs = readLogs(join(root, name));
  const lostBytes = sizeOf(before, 'content') - sizeOf(before, 'durable');
  rmSync(join(root, name), { recursive: true });
  restore(root, before);
  for (const [path, content] of logs) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, content);
  }
  return { lostBytes };
}

function readTree(folder: string): Node {
  const node = newNode('folder');
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    adopt(node, entry.name, entry.isDirectory() ? readTree(path) : newNode('file', readFileSync(path)));
  }
  return node;
}

function adopt(parent: Node, name: string, child: Node): void {
  parent.children.set(name, child);
  parent.durableChildren.set(name, child);
}

function replay(root: string, name: string, tree: Node, calls: readonly FileCall[]): void {
  // A write counts from its return on; a sync takes what is there when it begins and counts when it returns.
  const steps: { readonly at: number; readonly run: () => void }[] = [];
  for (const call of calls) {
    const isWithin = call.path === root || `${call.path}/`.startsWith(`${join(root, name)}/`);
    if (!isWithin || call.path.endsWith('-shm')) continue;
    if (call.name === 'fsync' || call.name === 'fdatasync') {
      let keep: () => void = () => undefined;
      const take = () => {
        keep = takeSync(find(root, tree, call.path));
      };
      steps.push({ at: call.began, run: take });
      steps.push({ at: call.returned + 0.5, run: () => keep() });
    } else steps.push({ at: call.returned, run: () => apply(root, tree, call) });
  }
  for (const { run } of steps.sort((a, b) => a.at - b.at)) run();
}

/** A file's sync keeps its bytes; a folder's sync keeps its names. */
function takeSync(node: Node | undefined): () => void {
  if (node === undefined) return () => undefined;
  const content = Buffer.from(node.content);
  const children = new Map(node.children);
  return () => {
    node.durable = content;
    node.durableChildren = children;
  };
}

function apply(root: string, tree: Node, call: FileCall): void {
  const parent = find(root, tree, dirname(call.path));
  const name = basename(call.path);
  const node = call.path === root ? tree : parent?.children.get(name);
  if (call.name.startsWith('rename')) {
    const from = find(root, tree, dirname(call.from));
    const moved = from?.children.get(basename(call.from));
    if (moved !== undefined) parent?.children.set(name, moved);
    from?.children.delete(basename(call.from));
  } else if (call.name.startsWith('unlink') || call.name === 'rmdir') parent?.children.delete(name);
  else if (call.creates && node === undefined)
    parent?.children.set(name, newNode(call.name.startsWith('mkdir') ? 'folder' : 'file'));
  else if (node === undefined) return;
  else if (call.empties) node.content = Buffer.alloc(0);
  else if (call.name.endsWith('truncate')) node.content = resized(node.content, call.offset);
  else if (call.data.length > 0) write(node, call);
}

function write(node: Node, { data, offset }: FileCall): void {
  const at = offset < 0 ? node.content.length : offset;
  const grown = node.content.length < at + data.length ? resized(node.content, at + data.length) : node.content;
  data.copy(grown, at);
  node.content = grown;
}

function resized(content: Buffer, length: number): Buffer {
  const fresh = Buffer.alloc(length);
  content.copy(fresh);
  return fresh;
}

function find(root: string, tree: Node, path: string): Node | undefined {
  if (path === root) return tree;
  const names = path.slice(root.length + 1).split('/');
  return names.reduce<Node | undefined>((node, name) => node?.children.get(name), tree);
}

function restore(path: string, node: Node): void {
  if (node.kind === 'file') {
    writeFileSync(path, node.durable);
    return;
  }
  mkdirSync(path, { recursive: true });
  for (const [name, child] of node.durableChildren) restore(join(path, name), child);
}

function sizeOf(node: Node, which: 'content' | 'durable'): number {
  const children = which === 'content' ? node.children : node.durableChildren;
  return [...children.values()].reduce((sum, child) => sum + sizeOf(child, which), node[which].length);
}

function readLogs(folder: string): Map<string, Buffer> {
  const logs = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.log'));
  return new Map(logs.map((path) => [join(folder, path), readFileSync(join(folder, path))]));
}

function newNode(kind: 'file' | 'folder', content = Buffer.alloc(0)): Node {
  return { kind, content, durable: content, children: new Map(), durableChildren: new Map() };
}
