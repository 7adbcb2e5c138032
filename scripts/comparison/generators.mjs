/** The seven generators of the comparison: as of which commit, and the file that a bare line number (L…) means. */
export const GENERATORS = [
  {
    name: 'SpecForge',
    repository: 'sgl-project/SpecForge',
    commit: 'a6b6b023',
    date: '2026-08-08',
    file: 'scripts/regenerate_train_data.py',
  },
  {
    name: 'speculators',
    repository: 'vllm-project/speculators',
    commit: 'c05b95b3',
    date: '2026-08-20',
    file: 'scripts/response_regeneration/script.py',
  },
  {
    name: 'Model-Optimizer',
    repository: 'NVIDIA/Model-Optimizer',
    commit: 'a2fbac7b',
    date: '2026-08-21',
    file: 'examples/speculative_decoding/scripts/server_generate.py',
  },
  {
    name: 'Automodel',
    repository: 'NVIDIA-NeMo/Automodel',
    commit: '36044ad3',
    date: '2026-08-22',
    file: 'nemo_automodel/components/speculative/regenerate.py',
  },
  {
    name: 'DeepSpec',
    repository: 'deepseek-ai/DeepSpec',
    commit: 'afdfa7c9',
    date: '2026-06-30',
    file: 'scripts/data/generate_train_data.py',
  },
  {
    name: 'TorchSpec',
    repository: 'lightseekorg/TorchSpec',
    commit: '6f21829c',
    date: '2026-04-28',
    file: 'tools/generate_data.py',
  },
  {
    name: 'AngelSlim',
    repository: 'Tencent/AngelSlim',
    commit: '67394ce5',
    date: '2026-08-07',
    file: 'angelslim/compressor/speculative/train/data/data_generation.py',
  },
];
