/** vLLM's command line: the model is the one word without a flag, and switches can be said no to. */
import { addMissing, findFlag, type LaunchFlags, type Launching, type LaunchWords, VLLM_LINE, wordsOf } from '../launching.ts';

const MODEL = ['model', 'model-tag'];

export const vllmLaunching: Launching = {
  usualCommand: 'vllm serve',
  // From 0.10 on the short form lists groups alone; before, `all` is not known.
  helpWords: [['--help=all'], ['--help']],
  effectiveFlags: ({ model, host, port, flags }) =>
    addMissing(
      flags,
      [
        { name: 'model', names: MODEL, value: model },
        { name: 'host', names: ['host'], value: host },
        { name: 'port', names: ['port'], value: port },
      ],
      VLLM_LINE,
    ),
  renderWords(launch: LaunchWords) {
    const flags = vllmLaunching.effectiveFlags(launch);
    // `vllm serve` warns of `--model` and may take its default model instead.
    return [String(findFlag(flags, MODEL, VLLM_LINE)), ...wordsOf(withoutModel(flags), VLLM_LINE)];
  },
};

function withoutModel(flags: LaunchFlags): LaunchFlags {
  return Object.fromEntries(
    Object.entries(flags).filter(([name, value]) => findFlag({ [name]: value }, MODEL, VLLM_LINE) === undefined),
  );
}
