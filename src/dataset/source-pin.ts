/** How a partition's source was when it was read, so that a resume can tell whether it is still the same. */
export interface FilePin {
  readonly path: string;
  readonly bytes: number;
  readonly mtimeMs: number;
  /** sha256 of the first `hashedBytes` bytes of the file as stored (compressed where it is), '' before anything was read. */
  readonly sha256: string;
  readonly hashedBytes: number;
}

/** One of several files. */
export interface PartPin extends FilePin {
  /** Rows taken from it so far; `isWhole`: there are no more. */
  readonly rows: number;
  readonly isWhole: boolean;
}

/**
 * Of a single file, the file's. Of several (a list, a pattern, the hub), `path` says where they are from, with the commit
 * in it for the hub; bytes and hashed bytes are sums, and the hash is empty, because `files` has theirs.
 */
export interface SourcePin extends FilePin {
  readonly files?: readonly PartPin[];
}
