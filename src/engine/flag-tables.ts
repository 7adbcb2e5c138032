/** The flags of the engines that a person can plan a launch of. */
import type { FlagTable } from './launch-flags.ts';
import { SGLANG_FLAGS } from './sglang/flags.ts';
import { VLLM_FLAGS } from './vllm/flags.ts';

export const FLAG_TABLES: Readonly<Record<'sglang' | 'vllm', FlagTable>> = { sglang: SGLANG_FLAGS, vllm: VLLM_FLAGS };
