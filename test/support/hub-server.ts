/**
 * A server that answers like the hub, for data sets and models: commit of a revision, listing in pages, files in place and by redirect
 * (as LFS has them), 401 for private and unknown, 404 for a file that is not there. Loopback only.
 */
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface HubSet {
  /** What `main` is now. */
  commit: string;
  readonly isPrivate?: boolean;
  /** By commit, by path. */
  readonly files: Readonly<Record<string, Readonly<Record<string, Uint8Array>>>>;
}

export interface HubServer {
  readonly url: string;
  readonly requests: string[];
  /** Bytes after which a body is cut off; 0 = never. */
  cutAfter: number;
  close(): Promise<void>;
}

export const GOOD_TOKEN = 'hf_good';
/** Entries of a page of the listing: small, so that every test has several pages. */
const PAGE = 2;
/** Files above this are stored elsewhere, as LFS does. */
const LFS_BYTES = 100;

export async function startHubServer(sets: Readonly<Record<string, HubSet>>): Promise<HubServer> {
  const hub: { requests: string[]; cutAfter: number } = { requests: [], cutAfter: 0 };
  const server = createServer((request, response) => {
    hub.requests.push(request.url ?? '');
    answer(sets, hub, request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return Object.assign(hub, {
    url,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  });
}

type State = { readonly cutAfter: number };

function answer(sets: Readonly<Record<string, HubSet>>, hub: State, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? '/', `http://${request.headers.host}`);
  const path = decodeURIComponent(url.pathname);
  const stored = /^\/lfs\/([\w-]+\/[\w-]+)\/(\w+)\/(.+)$/.exec(path);
  if (stored !== null) {
    sendFile(hub, request, response, sets[stored[1] ?? '']?.files[stored[2] ?? '']?.[stored[3] ?? '']);
    return;
  }
  const [, name = '', kind, revision = '', rest = ''] =
    /^\/(?:api\/datasets\/|api\/models\/|datasets\/)?([\w-]+\/[\w-]+)\/(revision|tree|resolve)\/([^/]+)\/?(.*)$/.exec(path) ?? [];
  const set = sets[name];
  const token = request.headers.authorization?.replace('Bearer ', '');
  const isWrong = token !== undefined && token !== GOOD_TOKEN;
  if (isWrong || ((set === undefined || set.isPrivate === true) && token === undefined)) {
    sendJson(response, 401, {
      error: isWrong ? 'Invalid credentials in Authorization header' : 'Invalid username or password.',
    });
    return;
  }
  const commit = revision === 'main' ? set?.commit : revision;
  const files = set?.files[commit ?? ''];
  if (set === undefined || files === undefined) {
    sendJson(response, 404, { error: 'Repository or revision not found' });
    return;
  }
  if (kind === 'revision') {
    sendJson(response, 200, { _id: '1', id: name, sha: commit, private: set.isPrivate ?? false });
    return;
  }
  if (kind === 'tree') {
    sendTree(response, url, rest, files);
    return;
  }
  const file = files[rest];
  if (file === undefined) {
    response.setHeader('X-Error-Code', 'EntryNotFound');
    sendJson(response, 404, { error: 'Entry not found' });
    return;
  }
  if (file.length <= LFS_BYTES) {
    sendFile(hub, request, response, file);
    return;
  }
  const headers = {
    location: `/lfs/${name}/${commit}/${encodeURIComponent(rest)}`,
    'X-Linked-Size': file.length,
    'X-Linked-ETag': `"${sha256(file)}"`,
  };
  response.writeHead(302, headers).end();
}

function sendTree(response: ServerResponse, url: URL, folder: string, files: Readonly<Record<string, Uint8Array>>): void {
  const paths = Object.keys(files).filter((path) => folder === '' || path.startsWith(`${folder}/`));
  if (folder !== '' && paths.length === 0) {
    sendJson(response, 404, { error: `${folder} does not exist on "main"` });
    return;
  }
  const from = Number(url.searchParams.get('cursor') ?? 0);
  if (from + PAGE < paths.length) {
    url.searchParams.set('cursor', String(from + PAGE));
    response.setHeader('Link', `<${url.href}>; rel="next"`);
  }
  const entries = paths.slice(from, from + PAGE).map((path) => {
    const file = files[path] as Uint8Array;
    const lfs = file.length > LFS_BYTES ? { lfs: { oid: sha256(file), size: file.length, pointerSize: 130 } } : {};
    return { type: 'file', oid: 'x', size: file.length, path, ...lfs };
  });
  sendJson(response, 200, entries);
}

function sendFile(hub: State, request: IncomingMessage, response: ServerResponse, file: Uint8Array | undefined): void {
  if (file === undefined) {
    sendJson(response, 404, { error: 'gone' });
    return;
  }
  response.setHeader('ETag', `"${sha256(file)}"`);
  const range = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '');
  if (range !== null) {
    const part = file.subarray(Number(range[1]), Number(range[2]) + 1);
    response
      .writeHead(206, { 'Content-Range': `bytes ${range[1]}-${range[2]}/${file.length}`, 'Content-Length': part.length })
      .end(part);
    return;
  }
  response.writeHead(200, { 'Content-Length': file.length });
  if (hub.cutAfter === 0 || hub.cutAfter >= file.length) response.end(file);
  else response.write(file.subarray(0, hub.cutAfter), () => response.destroy());
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
