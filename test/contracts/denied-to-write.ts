/** Root may write everywhere, so a test of a read-only folder has to be somebody else for its time. */

/** The user that owns nothing, on Linux and macOS alike. */
const NOBODY = 65_534;

export function deniedToWrite<T>(work: () => T): T {
  const isRoot = process.geteuid?.() === 0;
  if (isRoot) process.seteuid?.(NOBODY);
  try {
    return work();
  } finally {
    if (isRoot) process.seteuid?.(0);
  }
}
