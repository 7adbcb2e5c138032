/** The shape of a model: from the table that comes with Aerie, from a folder, from the cache, or from its `config.json` on the hub. */
import { findKnownModel } from '../../capacity/known-models.ts';
import type { ModelShape } from '../../capacity/model-shape.ts';
import { readModelConfig } from '../../capacity/read-model-config.ts';
import type { OperationContext } from '../context.ts';
import { obtainModelFiles } from './model-files.ts';

export async function obtainShape(model: string, { host, onNote, drain }: OperationContext): Promise<ModelShape> {
  const known = findKnownModel(model);
  if (known !== undefined) return readModelConfig(known);
  const files = await obtainModelFiles(model, { env: host.env, signal: drain }, onNote);
  const { name, config, quantConfig, weightBytes, source } = files;
  return readModelConfig({
    name,
    config: config as Readonly<Record<string, unknown>>,
    ...(quantConfig === undefined ? {} : { hfQuantConfig: quantConfig as Readonly<Record<string, unknown>> }),
    ...(weightBytes === 0 ? {} : { checkpointBytes: weightBytes }),
    source,
  });
}
