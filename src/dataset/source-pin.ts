/** How a partition's source was when it was read, so that a resume can tell whether it is still the same. */
export interface SourcePin {
  readonly path: string;
  readonly bytes: number;
  readonly mtimeMs: number;
  /** sha256 of the first `hashedBytes` bytes of the file as stored (compressed where it is), '' before anything was read. */
  readonly sha256: string;
  readonly hashedBytes: number;
}
