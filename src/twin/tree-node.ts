/** A node of the prefix tree: a run of whole pages of one segment, in the pool, on the host, or both. */

export interface TreeNode {
  parent: TreeNode | undefined;
  readonly key: string;
  tokens: number;
  /** Running requests on it or below it. */
  locks: number;
  touched: number;
  inPool: boolean;
  onHost: boolean;
  /** Children in the pool: a node with none is a leaf of the pool. */
  poolChildren: number;
  children: Map<string, TreeNode> | undefined;
}

export function newNode(parent: TreeNode | undefined, key: string, tokens: number): TreeNode {
  return { parent, key, tokens, locks: 0, touched: 0, inPool: false, onHost: false, poolChildren: 0, children: undefined };
}

/** What the pool may give up. */
export const isPoolLeaf = (node: TreeNode): boolean => node.inPool && node.locks === 0 && node.poolChildren === 0;

/** Only on the host, and nothing below it: what the host tier may give up. */
export const isHostLeaf = (node: TreeNode): boolean => node.onHost && !node.inPool && (node.children?.size ?? 0) === 0;

/** Tokens from the root to its end. */
export function depthOf(node: TreeNode): number {
  let depth = 0;
  for (let at: TreeNode | undefined = node; at !== undefined; at = at.parent) depth += at.tokens;
  return depth;
}
