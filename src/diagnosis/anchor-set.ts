/**
 * Looks for many short texts in bytes at once (Aho–Corasick), at one table look-up a byte whatever the log holds.
 * Pure. White space, terminal colours and letter case do not count.
 */
import { bareText } from './sign.ts';

/** Letters of the alphabet, so that a row of the table has a power of two places: ASCII has 95 that are printed. */
export const CLASS_BITS = 7;
const CLASSES = 2 ** CLASS_BITS;
const SPACE_CLASS = 1;

export class AnchorSet {
  /** state × class → state. */
  readonly next: Uint16Array;
  /** byte → class: small and capital letters share one, so does all white space, so do bytes that stand in no text. */
  readonly classOf: Uint8Array;
  /** States from here on have found something. */
  readonly firstFound: number;
  readonly #found: readonly (readonly number[])[];

  /** The texts' places in the list are the numbers that `found` gives. */
  constructor(texts: readonly string[]) {
    const bare = texts.map((text) => Buffer.from(bareText(text)));
    this.classOf = makeClasses(bare);
    const { children, outputs } = buildTrie(bare.map((bytes) => bytes.map((byte) => this.classOf[byte] ?? 0)));
    const fail = linkFailures(children, outputs);
    const order = [...children.keys()].sort((a, b) => (outputs[a]?.length ?? 0) - (outputs[b]?.length ?? 0) || a - b);
    const place = new Uint16Array(children.length);
    order.forEach((state, at) => {
      place[state] = at;
    });
    this.firstFound = order.findIndex((state) => (outputs[state]?.length ?? 0) > 0);
    this.#found = order.map((state) => outputs[state] ?? []);
    this.next = fillTable(children, fail, place);
  }

  /** The state after a byte. */
  step(state: number, byte: number): number {
    return this.next[(state << CLASS_BITS) | (this.classOf[byte] ?? 0)] ?? 0;
  }

  found(state: number): readonly number[] {
    return this.#found[state] ?? [];
  }
}

function makeClasses(texts: readonly Uint8Array[]): Uint8Array {
  const classes = new Uint8Array(256);
  let used = SPACE_CLASS;
  for (const byte of new Set(texts.flatMap((text) => [...text]))) {
    used += 1;
    if (used >= CLASSES) throw new Error(`texts of more than ${CLASSES - 2} different bytes`);
    classes[byte] = used;
  }
  for (let letter = 65; letter <= 90; letter++) classes[letter] = classes[letter + 32] ?? 0;
  classes.fill(SPACE_CLASS, 0, 33);
  return classes;
}

type Children = Map<number, number>;

function buildTrie(texts: readonly Uint8Array[]): { children: Children[]; outputs: number[][] } {
  const children: Children[] = [new Map()];
  const outputs: number[][] = [[]];
  texts.forEach((text, id) => {
    if (text.length === 0) throw new Error('an empty text would be found everywhere');
    let state = 0;
    for (const byte of text) {
      const known = children[state]?.get(byte);
      if (known !== undefined) {
        state = known;
        continue;
      }
      children.push(new Map());
      outputs.push([]);
      children[state]?.set(byte, children.length - 1);
      state = children.length - 1;
    }
    outputs[state]?.push(id);
  });
  // Uint16 states.
  if (children.length > 65_535) throw new Error(`${children.length} states are more than a table of 16-bit numbers holds`);
  return { children, outputs };
}

/** Breadth first: the longest proper suffix of each state that is a state too. A state finds what its suffixes find. */
function linkFailures(children: readonly Children[], outputs: number[][]): number[] {
  const fail = new Array<number>(children.length).fill(0);
  const queue = [...(children[0]?.values() ?? [])];
  for (let at = 0; at < queue.length; at++) {
    const state = queue[at] ?? 0;
    for (const [byte, child] of children[state] ?? []) {
      let suffix = fail[state] ?? 0;
      while (suffix !== 0 && children[suffix]?.has(byte) !== true) suffix = fail[suffix] ?? 0;
      fail[child] = children[suffix]?.get(byte) ?? 0;
      outputs[child]?.push(...(outputs[fail[child] ?? 0] ?? []));
      queue.push(child);
    }
  }
  return fail;
}

function fillTable(children: readonly Children[], fail: readonly number[], place: Uint16Array): Uint16Array {
  const table = new Uint16Array(children.length * CLASSES);
  const queue = [0];
  for (let at = 0; at < queue.length; at++) {
    const state = queue[at] ?? 0;
    const row = (place[state] ?? 0) * CLASSES;
    const suffixRow = (place[fail[state] ?? 0] ?? 0) * CLASSES;
    // Breadth first, so the row of the shorter suffix is already whole.
    if (state !== 0) table.copyWithin(row, suffixRow, suffixRow + CLASSES);
    for (const [byte, child] of children[state] ?? []) {
      table[row + byte] = place[child] ?? 0;
      queue.push(child);
    }
    // White space does not count: it leaves the state as it is.
    table[row + SPACE_CLASS] = place[state] ?? 0;
  }
  return table;
}
