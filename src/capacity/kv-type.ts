/** What the KV cache of a launch will really hold. Policy is matched on `bits`, never on a spelling. */
export interface ResolvedKvType {
  /** As the flag says, `auto` where it does not. */
  readonly asked: string;
  /** `bf16`, `fp8_e4m3`, `fp8_ds_mla`, … */
  readonly type: string;
  /** Bits per element without scales. */
  readonly bits: number;
  /** Bytes of scales for each element, 0 for types that keep none in the pool. */
  readonly scaleBytesPerElement: number;
  /** The engine takes another type than the one written. */
  readonly isOverridden: boolean;
  readonly because: string;
  /** Why the engine does not start with this flag; '' where it does. */
  readonly refusal: string;
}
