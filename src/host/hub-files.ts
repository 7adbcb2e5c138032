/**
 * Files of the Hugging Face hub: what lies in a repository, how large a file is, and its bytes as a stream.
 *
 * A hub that cannot be reached fails within ten seconds, never later: the caller has other places to try. Everything
 * thrown is a `HubError` whose message says what the hub or the network answered. Xet is not used: plain HTTP passes
 * proxies and mirrors. `HF_ENDPOINT` (a mirror), `HF_TOKEN` and the proxy variables of the environment are honoured.
 */
import { EnvHttpProxyAgent, fetch as undiciFetch } from 'undici';
import { systemCodeOf } from '../base/errors.ts';

export interface HubAccess {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal?: AbortSignal;
}

export interface HubFileName {
  /** `owner/name`; datasets are written `datasets/owner/name`. */
  readonly repo: string;
  readonly path: string;
  /** Branch, tag or commit; `main` when left out. */
  readonly revision?: string;
}

export interface HubFile {
  readonly bytes: number;
  /** Where the hub stores the file by its sha256 (all large files), else ''. */
  readonly sha256: string;
  open(): Promise<AsyncIterable<Uint8Array>>;
}

export class HubError extends Error {
  /** HTTP status of the hub's answer; 0 = there was none. */
  readonly status: number;

  constructor(message: string, status: number, cause: unknown) {
    super(message, { cause });
    this.name = 'HubError';
    this.status = status;
  }
}

/** To connect and to get the first answer, name resolution included. */
const REACH_MS = 10_000;
/** Between two pieces of a body: a stalled download is given up, a slow one is not. */
const STALL_MS = 60_000;

/** Loaded when a hub is asked: most runs never ask one. */
const loadHub = () => import('@huggingface/hub');

/** undefined: the repository is there, the file is not. */
export async function findHubFile(name: HubFileName, access: HubAccess): Promise<HubFile | undefined> {
  const wanted = { ...connect(access), repo: repoOf(name.repo), path: encodePath(name.path), revision: name.revision ?? 'main' };
  const { downloadFile, fileDownloadInfo } = await loadHub();
  const found = await asHubError(() => fileDownloadInfo(wanted));
  if (found === null) return undefined;
  const etag = found.etag.replace(/^W\//, '').replaceAll('"', '');
  return {
    bytes: found.size,
    sha256: /^[0-9a-f]{64}$/.test(etag) ? etag : '',
    open: () =>
      asHubError(async () => {
        const blob = await downloadFile({ ...wanted, downloadInfo: found, xet: false });
        if (blob === null) throw new Error(`${name.path} is gone`);
        return pieces(blob.stream());
      }),
  };
}

export interface HubEntry {
  readonly path: string;
  readonly bytes: number;
  /** Where the hub stores the file by its sha256 (all large files), else ''. */
  readonly sha256: string;
}

/** Files below a folder of a repository, however deep. */
export async function listHubEntries(repo: string, revision: string, access: HubAccess, folder = ''): Promise<HubEntry[]> {
  return asHubError(async () => {
    const { listFiles } = await loadHub();
    const entries: HubEntry[] = [];
    const where = folder === '' ? {} : { path: encodePath(folder) };
    for await (const { type, path, size, lfs } of listFiles({
      ...{ ...connect(access), ...where, repo: repoOf(repo), recursive: true, revision: encodeURIComponent(revision) },
    })) {
      if (type === 'file') entries.push({ path, bytes: lfs?.size ?? size, sha256: lfs?.oid ?? '' });
    }
    return entries;
  });
}

/** Paths of the files in a repository, folders included by their files. */
export async function listHubFiles(repo: string, access: HubAccess, revision = 'main'): Promise<string[]> {
  return (await listHubEntries(repo, revision, access)).map(({ path }) => path);
}

/** The commit that a branch or tag of a data set names at this moment. */
export async function findDatasetCommit(name: string, revision: string, access: HubAccess): Promise<string> {
  return asHubError(async () => {
    const { datasetInfo } = await loadHub();
    const { sha } = await datasetInfo({ ...connect(access), name, revision, additionalFields: ['sha'] });
    if (typeof sha !== 'string' || !/^[0-9a-f]{40,64}$/.test(sha))
      throw new Error(`the hub names no commit for ${revision} of ${name}`);
    return sha;
  });
}

/** A path as it stands in a URL: a name may hold spaces, # or ?. */
function encodePath(path: string): string {
  return path.split('/').map(encodeURIComponent).join('/');
}

function repoOf(repo: string) {
  return repo.startsWith('datasets/')
    ? ({ type: 'dataset', name: repo.slice('datasets/'.length) } as const)
    : ({ type: 'model', name: repo } as const);
}

function connect({ env, signal }: HubAccess) {
  const variable = (name: string) => env[name] ?? env[name.toUpperCase()];
  const dispatcher = new EnvHttpProxyAgent({
    connect: { timeout: REACH_MS },
    headersTimeout: STALL_MS,
    bodyTimeout: STALL_MS,
    httpProxy: variable('http_proxy') ?? '',
    httpsProxy: variable('https_proxy') ?? '',
    noProxy: variable('no_proxy') ?? '',
  });
  const reach: typeof undiciFetch = async (input, init) => {
    const outOfReach = new AbortController();
    const timer = setTimeout(() => outOfReach.abort(new Error(`no answer within ${REACH_MS / 1000} s`)), REACH_MS);
    try {
      return await undiciFetch(input, {
        ...init,
        dispatcher,
        signal: signal === undefined ? outOfReach.signal : AbortSignal.any([outOfReach.signal, signal]),
      });
    } finally {
      clearTimeout(timer); // from here on the body has its own limit
    }
  };
  const token = env['HF_TOKEN'];
  return {
    fetch: reach as unknown as typeof fetch,
    ...(env['HF_ENDPOINT'] ? { hubUrl: env['HF_ENDPOINT'].replace(/\/+$/, '') } : {}),
    ...(token?.startsWith('hf_') ? { accessToken: token } : {}),
  };
}

async function* pieces(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of stream as unknown as AsyncIterable<Uint8Array>) yield piece;
  } catch (thrown) {
    throw await hubError(thrown);
  }
}

async function asHubError<T>(action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (thrown) {
    throw await hubError(thrown);
  }
}

/** undici hides the reason ("fetch failed") in the cause. */
async function hubError(thrown: unknown): Promise<HubError> {
  if (thrown instanceof HubError) return thrown;
  const { HubApiError } = await loadHub();
  const cause = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown;
  const text = cause instanceof Error ? cause.message : String(cause);
  const code = systemCodeOf(cause);
  const status = thrown instanceof HubApiError ? thrown.statusCode : 0;
  return new HubError(code === '' || text.includes(code) ? text : `${code} ${text}`, status, thrown);
}
