/**
 * Looks for many short texts in bytes at once (Aho–Corasick), at one table look-up a byte whatever the log holds.
 * Pure. White space, terminal colours and letter case do not count.
 */
import { bareText } from './sign.ts';

const LETTERS = 256;

export class AnchorSet {
  /** state × byte → state. */
  readonly next: Uint16Array;
  /** States from here on have found something. */
  readonly firstFound: number;
  readonly #found: readonly (readonly number[])[];

  /** The texts' places in the list are the numbers that `found` gives. */
  constructor(texts: readonly string[]) {
    const { children, outputs } = buildTrie(texts.map(bareText));
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

  found(state: number): readonly number[] {
    return this.#found[state] ?? [];
  }
}

type Children = Map<number, number>;

function buildTrie(texts: readonly string[]): { children: Children[]; outputs: number[][] } {
  const children: Children[] = [new Map()];
  const outputs: number[][] = [[]];
  texts.forEach((text, id) => {
    if (text === '') throw new Error('an empty text would be found everywhere');
    let state = 0;
    for (const byte of Buffer.from(text)) {
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
  const table = new Uint16Array(children.length * LETTERS);
  const queue = [0];
  for (let at = 0; at < queue.length; at++) {
    const state = queue[at] ?? 0;
    const row = (place[state] ?? 0) * LETTERS;
    const suffixRow = (place[fail[state] ?? 0] ?? 0) * LETTERS;
    // Breadth first, so the row of the shorter suffix is already whole.
    if (state !== 0) table.copyWithin(row, suffixRow, suffixRow + LETTERS);
    for (const [byte, child] of children[state] ?? []) {
      table[row + byte] = place[child] ?? 0;
      queue.push(child);
    }
    for (let letter = 65; letter <= 90; letter++) table[row + letter] = table[row + letter + 32] ?? 0;
  }
  return table;
}
