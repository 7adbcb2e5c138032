/** `hf://datasets/OWNER/NAME[@REVISION]/PATH` → its parts. Pure. */

export interface HubPath {
  /** `OWNER/NAME`. */
  readonly name: string;
  /** Branch, tag or commit as written; `main` where nothing is. */
  readonly revision: string;
  /** A file of the data set, or a pattern of files. */
  readonly path: string;
}

const SCHEME = 'hf://';
/** The hub's own rule for names. A revision may hold slashes only as `refs/…`, written with %2F as elsewhere on the hub. */
const HUB_PATH = /^hf:\/\/datasets\/([\w.-]+\/[\w.-]+)(?:@([^/\s]+))?\/(.*[^/\s].*)$/;

export function isHubPath(written: string): boolean {
  return written.toLowerCase().startsWith(SCHEME);
}

/** undefined: it does not name a file of a data set. */
export function parseHubPath(written: string): HubPath | undefined {
  const [, name, revision = 'main', path] = HUB_PATH.exec(written) ?? [];
  // A step up would leave the folder in the cache.
  if (name === undefined || path === undefined || path.split('/').some((step) => step === '..' || step === '.')) return undefined;
  try {
    return { name, revision: decodeURIComponent(revision), path };
  } catch {
    return undefined;
  }
}
