/**
 * Loading: a GGUF file → the model, one context with its sequences, and what is known about them.
 *
 * Never compiles and never downloads (`build: 'never'`, `skipDownload`): the binary comes with the package or loading
 * fails. Context shift is off: its strategy throws, so the beginning of a prompt can never be dropped silently.
 * Failure: `LoadError` with the exit code that the program ends with.
 */
import { createHash } from 'node:crypto';
import { access, constants } from 'node:fs/promises';
import type { Llama, LlamaContextSequence, LlamaModel } from 'node-llama-cpp';
import { type ChatTemplate, compileChatTemplate } from '../../tokens/chat-template.ts';
import { byteLevelDecoder, type Decoder, nativeDecoder } from './decode.ts';
import type { EngineFlags } from './flags.ts';
import { SequencePool } from './sequences.ts';

export interface Vocabulary {
  readonly model: string;
  readonly pre: string;
  readonly tokens: readonly string[];
  readonly tokenTypes: readonly number[];
  readonly merges: readonly string[];
  readonly bosId: number | null;
  readonly eosId: number | null;
  readonly addBos: boolean;
  /** Bytes of the longest token: a text longer than context × this cannot fit. */
  readonly longestTokenBytes: number;
}

export interface LoadedModel {
  readonly flags: EngineFlags;
  readonly version: string;
  /** GGUF file type, such as `Q4_1`. */
  readonly weights: string;
  readonly vocabulary: Vocabulary;
  /** '' where the file has none. */
  readonly templateSource: string;
  readonly templateHash: string;
  readonly template: ChatTemplate | undefined;
  /** Ids that end an answer. */
  readonly endIds: ReadonlySet<number>;
  readonly decoder: Decoder;
  readonly sequences: readonly LlamaContextSequence[];
  readonly pool: SequencePool;
  /** Grows while the engine works; the log's summary line reads it. */
  readonly activity: { generated: number };
  /** Aborted when the program ends. */
  readonly stopping: AbortSignal;
  /** Refuses all steps that have not begun. */
  refuseSteps(): void;
  tokenize(text: string): number[];
}

/**
 * Most tokens of one step. A client that goes away, a shutdown and every other sequence wait until a step ends: 0.7 s at the
 * 190 tokens/s of SmolLM2 on one core. 512, llama.cpp's default, is no faster there (docs/benchmarks.md).
 */
export const STEP_TOKENS = 128;

export class LoadError extends Error {
  readonly exitCode: 2 | 3 | 4;

  constructor(exitCode: 2 | 3 | 4, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'LoadError';
    this.exitCode = exitCode;
  }
}

export const PACKAGE_MISSING =
  'The embedded engine needs the package node-llama-cpp, which is not installed: type npm install node-llama-cpp@3.21.1';

/** `stopping` ends the loading, and later every generation. */
export async function loadModel(flags: EngineFlags, log: (line: string) => void, stopping: AbortSignal): Promise<LoadedModel> {
  await access(flags.modelPath, constants.R_OK).catch((thrown: unknown) => {
    throw new LoadError(3, `The model file ${flags.modelPath} cannot be read: check the path given with --model`, thrown);
  });
  const library = await import('node-llama-cpp').catch((thrown: unknown) => {
    throw new LoadError(3, PACKAGE_MISSING, thrown);
  });
  const llama = await openLlama(library, flags, log);
  const model = await llama
    .loadModel({ modelPath: flags.modelPath, gpuLayers: 0, onLoadProgress: quarters(log), loadSignal: stopping })
    .catch(loadFailed(`The model ${flags.modelPath} could not be loaded`));
  if (flags.contextTokens > model.trainContextSize) {
    throw new LoadError(
      2,
      `--context ${flags.contextTokens} is more than the ${model.trainContextSize} tokens the model was trained for: type --context ${model.trainContextSize}`,
    );
  }
  const sequences = await openSequences(model, flags);
  return { ...describe(flags, model, sequences, library.GgufFileType), version: await library.getModuleVersion(), stopping };
}

async function openLlama(
  library: typeof import('node-llama-cpp'),
  flags: EngineFlags,
  log: (line: string) => void,
): Promise<Llama> {
  return library
    .getLlama({
      gpu: false,
      build: 'never',
      skipDownload: true,
      progressLogs: false,
      maxThreads: flags.threads,
      logger: (level, message) => log(`llama.cpp ${level}: ${message.trimEnd()}`),
    })
    .catch(loadFailed('node-llama-cpp has no binary for this machine (linux and macOS, x64 and arm64, have one)', 3));
}

async function openSequences(model: LlamaModel, flags: EngineFlags): Promise<LlamaContextSequence[]> {
  const type = flags.kvType === 'f16' ? 'F16' : 'Q8_0';
  const context = await model
    .createContext({
      sequences: flags.sequences,
      contextSize: flags.contextTokens,
      batchSize: Math.max(STEP_TOKENS, flags.sequences), // a step must hold one token of each sequence
      threads: flags.threads,
      flashAttention: flags.kvType === 'f16' ? 'auto' : true, // llama.cpp quantises the V cache only with flash attention
      experimentalKvCacheKeyType: type,
      experimentalKvCacheValueType: type,
      failedCreationRemedy: false, // never a smaller context than was asked for
    })
    .catch(
      loadFailed(`A context of ${flags.sequences} × ${flags.contextTokens} tokens could not be made (try a smaller --sequences)`),
    );
  const refuseShift = () => {
    throw new Error('the context is full; a request was admitted that does not fit');
  };
  return Array.from({ length: flags.sequences }, () => context.getSequence({ contextShift: { strategy: refuseShift } }));
}

function describe(
  flags: EngineFlags,
  model: LlamaModel,
  sequences: LlamaContextSequence[],
  fileTypes: Readonly<Record<number, string>>,
): Omit<LoadedModel, 'version' | 'stopping'> {
  const { ggml } = model.fileInfo.metadata.tokenizer;
  const templateSource = model.fileInfo.metadata.tokenizer.chat_template ?? '';
  const decoder =
    ggml.model === 'gpt2'
      ? byteLevelDecoder(ggml.tokens, ggml.token_type)
      : nativeDecoder((ids) => model.detokenize(ids as never[], false));
  const holders = sequences.map((sequence) => ({
    countShared: (tokens: readonly number[]) => sequence.compareContextTokens(tokens as never[]).firstDifferentIndex,
  }));
  const fileType = model.fileInfo.metadata.general.file_type;
  return {
    flags,
    weights: fileType === undefined ? 'unknown' : (fileTypes[fileType] ?? `type ${fileType}`).replace(/^(MOSTLY|ALL)_/, ''),
    vocabulary: {
      model: ggml.model,
      pre: ggml.pre ?? 'default',
      tokens: ggml.tokens,
      tokenTypes: ggml.token_type,
      merges: ggml.merges ?? [],
      bosId: model.tokens.bos,
      eosId: model.tokens.eos,
      addBos: model.tokens.shouldPrependBosToken,
      longestTokenBytes: ggml.tokens.reduce((most, token) => Math.max(most, Buffer.byteLength(token)), 1),
    },
    templateSource,
    templateHash: createHash('sha256').update(templateSource).digest('hex'),
    template: templateSource === '' ? undefined : compileChatTemplate(templateSource),
    endIds: new Set(Array.from(model.iterateAllTokens()).filter((token) => model.isEogToken(token))),
    decoder,
    sequences,
    pool: new SequencePool(holders),
    activity: { generated: 0 },
    refuseSteps: () => void sequences[0]?.context.dispose().catch(() => undefined),
    tokenize: (text) => model.tokenize(text, true),
  };
}

function loadFailed(what: string, exitCode: 3 | 4 = 4) {
  return (thrown: unknown): never => {
    throw new LoadError(exitCode, `${what}: ${thrown instanceof Error ? thrown.message : String(thrown)}`, thrown);
  };
}

/** Progress at each quarter: enough for a log to show life, few enough to read. */
function quarters(log: (line: string) => void): (share: number) => void {
  let told = 0;
  return (share) => {
    if (share * 4 < told + 1) return;
    told = Math.floor(share * 4);
    log(`loading the model: ${told * 25} %`);
  };
}
