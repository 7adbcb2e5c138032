/** The shape of a model: from the table that comes with Aerie, from a folder, from the cache, or from its `config.json` on the hub. */
import { isAbsolute } from 'node:path/posix';
import { findKnownModel } from '../../capacity/known-models.ts';
import type { ModelShape } from '../../capacity/model-shape.ts';
import { readModelConfig } from '../../capacity/read-model-config.ts';
import type { Machine } from '../../machine/machine.ts';
import type { OperationContext } from '../context.ts';
import { obtainModelFiles, readModelFilesThere } from './model-files.ts';

/** `machine`: where the model is loaded; a path of another machine is read there. */
export async function obtainShape(model: string, context: OperationContext, machine?: Machine): Promise<ModelShape> {
  const { host, onNote, drain } = context;
  const known = findKnownModel(model);
  if (known !== undefined) return readModelConfig(known);
  const isThere = machine?.isHere === false && isAbsolute(model);
  const there = isThere ? await readModelFilesThere(model, machine) : undefined;
  const files = there ?? (await obtainModelFiles(model, { env: host.env, signal: drain }, onNote));
  const { name, config, quantConfig, weightBytes, source } = files;
  return readModelConfig({
    name,
    config: config as Readonly<Record<string, unknown>>,
    ...(quantConfig === undefined ? {} : { hfQuantConfig: quantConfig as Readonly<Record<string, unknown>> }),
    ...(weightBytes === 0 ? {} : { checkpointBytes: weightBytes }),
    source,
  });
}
