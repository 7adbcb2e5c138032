/** A kind of GPU, as far as capacity and step time hang on it. */
export interface Gpu {
  readonly name: string;
  /** Total memory as the driver reports it (`nvidia-smi memory.total`), in MiB. */
  readonly memoryMiB: number;
  readonly bandwidthGBps: number;
  /** Dense BF16 tensor operations in TFLOP/s. */
  readonly bf16Tflops: number;
  /** How GPUs of one machine speak to each other, and bytes per second of one GPU in one direction. */
  readonly interconnect: { readonly kind: 'nvlink' | 'pcie' | 'xgmi'; readonly GBps: number };
  /** CUDA compute capability, 0 for other vendors: which kernels and KV types an engine chooses hangs on it. */
  readonly computeCapability: number;
  readonly sources: readonly string[];
}
