/**
 * Whom a server's certificate may come from: Node's own authorities, those of NODE_EXTRA_CA_CERTS, and those of SSL_CERT_FILE, which other
 * programs read and Node does not.
 */
import { readFileSync } from 'node:fs';
import { createSecureContext, rootCertificates, type SecureContext } from 'node:tls';

export type Authorities =
  | { readonly kind: 'default' }
  | { readonly kind: 'more'; readonly context: SecureContext }
  | { readonly kind: 'unreadable'; readonly because: string };

/** One context for all connections: hundreds of certificates are read for each. */
export function readAuthorities(env: Readonly<Record<string, string | undefined>>): Authorities {
  const file = env['SSL_CERT_FILE'] ?? '';
  if (file === '') return { kind: 'default' };
  // Certificates that are given replace Node's own, its extra ones too.
  const extra = env['NODE_EXTRA_CA_CERTS'] ?? '';
  const added = read(file);
  if (added === undefined) return { kind: 'unreadable', because: `SSL_CERT_FILE names ${file}, which cannot be read` };
  const others = extra === '' ? undefined : read(extra); // Node itself warns of one that is not there
  const ca = [...rootCertificates, added, ...(others === undefined ? [] : [others])];
  try {
    return { kind: 'more', context: createSecureContext({ ca }) };
  } catch {
    return { kind: 'unreadable', because: `SSL_CERT_FILE names ${file}, which holds no certificates` };
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
