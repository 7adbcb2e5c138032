/** What a launcher prints for `--help`, as Python's argparse lays it out at 80 columns. */
export const HELP = `INFO: something that was imported speaks first, of --nothing

usage: launch_server.py [-h] --model-path MODEL_PATH [--host HOST]
                        [--port PORT]
                        [--mem-fraction-static MEM_FRACTION_STATIC]
                        [--kv-cache-dtype {auto,fp8_e5m2,fp8_e4m3,--odd}]
                        [--tensor-parallel-size TENSOR_PARALLEL_SIZE]
                        [--enable-metrics]
                        [--enable-metrics-for-all-schedulers]
                        [--cuda-graph-bs CUDA_GRAPH_BS [CUDA_GRAPH_BS ...]]
                        [--enable-hierarchical-cache]
                        [--hicache-size HICACHE_SIZE]
                        [--hicache-ratio HICACHE_RATIO]
                        [--enable-prefix-caching | --no-enable-prefix-caching]
                        [-dp DATA_PARALLEL_SIZE]

options:
  -h, --help            show this help message and exit
  --model-path MODEL_PATH, --model MODEL_PATH
                        The path of the model weights. See also --tokenizer-
                        dir for others.
  --host HOST
  --port PORT
  --mem-fraction-static MEM_FRACTION_STATIC
                        Fraction; use a smaller value with --old-flag if you
                        see out-of-memory errors.
  --kv-cache-dtype {auto,fp8_e5m2,fp8_e4m3,--odd}
  --tensor-parallel-size TENSOR_PARALLEL_SIZE, --tp-size TENSOR_PARALLEL_SIZE, --tp TENSOR_PARALLEL_SIZE
  --enable-metrics
  --enable-metrics-for-all-schedulers
  --cuda-graph-bs CUDA_GRAPH_BS [CUDA_GRAPH_BS ...]
  --enable-hierarchical-cache
  --hicache-size HICACHE_SIZE
  --hicache-ratio HICACHE_RATIO

group:
  --enable-prefix-caching, --no-enable-prefix-caching
  -dp DATA_PARALLEL_SIZE, --data-parallel-size DATA_PARALLEL_SIZE
`;
