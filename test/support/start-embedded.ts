/** Starts the built embedded engine on a tiny model, for tests. Whoever starts it stops it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { writeTinyGguf } from './make-gguf.ts';

export const EMBEDDED_PROGRAM = fileURLToPath(new URL('../../dist/programs/embedded-engine.js', import.meta.url));

export interface JsonReply {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: a test reads the fields it knows to be there
  readonly body: any;
}

export interface StartedEngine {
  readonly process: ChildProcess;
  readonly baseUrl: string;
  /** Statuses and bodies of /health, from the first answer to the first 200. */
  readonly healthSeen: readonly { readonly status: number; readonly body: string }[];
  get(path: string): Promise<JsonReply>;
  post(path: string, body: unknown, signal?: AbortSignal): Promise<JsonReply>;
  stop(): Promise<void>;
}

export async function startEmbedded(flags: readonly string[] = []): Promise<StartedEngine> {
  const folder = await mkdtemp(join(tmpdir(), 'aerie-embedded-'));
  const model = join(folder, 'tiny.gguf');
  const portFile = join(folder, 'port');
  await writeTinyGguf(model, { seed: 1 });
  const args = [
    EMBEDDED_PROGRAM,
    '--model',
    model,
    '--served-model-name',
    'tiny',
    '--threads',
    '1',
    '--port-file',
    portFile,
    ...flags,
  ];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (piece: Buffer) => (output += piece.toString()));
  child.stderr.on('data', (piece: Buffer) => (output += piece.toString()));
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await ended;
    }
    await rm(folder, { recursive: true, force: true });
  };
  const alive = () => {
    if (child.exitCode !== null) throw new Error(`the engine ended with ${child.exitCode}: ${output}`);
  };
  let port = 0;
  while (port === 0) {
    alive();
    port = Number(await readFile(portFile, 'utf8').catch(() => '0'));
    if (port === 0) await delay(10);
  }
  const baseUrl = `http://127.0.0.1:${port}`;
  const healthSeen: { status: number; body: string }[] = [];
  while (healthSeen.at(-1)?.status !== 200) {
    alive();
    const reply = await fetch(`${baseUrl}/health`);
    healthSeen.push({ status: reply.status, body: await reply.text() });
    await delay(20);
  }
  const send = async (path: string, init: RequestInit): Promise<JsonReply> => {
    const reply = await fetch(baseUrl + path, init);
    return { status: reply.status, body: await reply.json() };
  };
  return {
    process: child,
    baseUrl,
    healthSeen,
    stop,
    get: (path) => send(path, {}),
    post: (path, body, signal) =>
      send(path, {
        method: 'POST',
        body: typeof body === 'string' ? body : JSON.stringify(body),
        ...(signal === undefined ? {} : { signal }),
      }),
  };
}
