/** A server of the embedded engine: its model is fetched here, its flags have room for what is asked. */
import { basename, join } from 'node:path';
import { DEFAULT_MODEL } from '../../server/default-model.ts';
import type { EmbeddedLaunch } from '../../server/launch-embedded.ts';
import { type ModelFile, obtainModel } from '../../server/model-file.ts';
import type { RunSpec, ServerSpec } from '../../spec/run.ts';
import type { OperationContext } from '../context.ts';

/** undefined where no server of the run is an embedded one. */
export async function obtainEmbeddedModel(run: RunSpec, context: OperationContext): Promise<ModelFile | undefined> {
  const isNeeded = run.servers.some(({ engine, attach }) => engine === 'embedded' && attach === undefined);
  if (!isNeeded) return undefined;
  const { host, drain, onNote } = context;
  const model = await obtainModel(run.model, { env: host.env, signal: drain, emit: tellOnce(onNote) });
  onNote(`model: ${model.label}`);
  return model;
}

/** A sentence a download, not a line a chunk. */
function tellOnce(onNote: (text: string) => void): (progress: { readonly text: string }) => void {
  let last = '';
  return ({ text }) => {
    if (text !== last) onNote(text);
    last = text;
  };
}

export function embeddedLaunch(run: RunSpec, server: ServerSpec, model: ModelFile): EmbeddedLaunch {
  return {
    server: server.name,
    modelPath: model.path,
    model: run.model === 'default' ? DEFAULT_MODEL.name : basename(run.model),
    revision: model.revision,
    flags: { context: contextFor(run), ...server.flags },
    port: server.port,
    logFolder: join(run.folder, 'logs'),
  };
}

/** Room for the longest answer and a prompt of a thousand tokens, where the run file names no context; a sequence of 2,048 tokens is the engine's own default. */
function contextFor(run: RunSpec): number {
  const longest = Math.max(...run.partitions.map(({ ask }) => ask.sampling.maxTokens));
  return Math.max(2048, Math.ceil((longest + 1024) / 256) * 256);
}
