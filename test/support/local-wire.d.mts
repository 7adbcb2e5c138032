import type { ShellWire } from '../../src/machine/shell-wire.ts';

export interface LocalWireRequest {
  /** `['dash']`, `['busybox', 'ash']`. */
  readonly shell: readonly string[];
  /** Left out: that of this process. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface LocalWire extends ShellWire {
  /** Requests so far. */
  asked(): number;
}

export function localWire(request: LocalWireRequest): LocalWire;
