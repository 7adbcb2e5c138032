/** SGLang's command line. Metrics are asked for: without them nothing but the log says whether a server at work still works. */
import { addMissing, type Launching, SGLANG_LINE, wordsOf } from '../launching.ts';

export const sglangLaunching: Launching = {
  // `sglang serve` came later and takes the same flags; this one is in every version.
  usualCommand: 'python3 -m sglang.launch_server',
  helpWords: [['--help']],
  effectiveFlags: ({ model, host, port, flags }) =>
    addMissing(
      flags,
      [
        { name: 'model-path', names: ['model-path', 'model'], value: model },
        { name: 'host', names: ['host'], value: host },
        { name: 'port', names: ['port'], value: port },
        { name: 'enable-metrics', names: ['enable-metrics'], value: true },
      ],
      SGLANG_LINE,
    ),
  renderWords: (launch) => wordsOf(sglangLaunching.effectiveFlags(launch), SGLANG_LINE),
};
