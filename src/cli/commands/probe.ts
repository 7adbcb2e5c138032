import type { EarlyServer } from '../../app/probe/report.ts';
import { runProbe } from '../../app/probe.ts';
import type { CliContext } from '../cli-context.ts';
import type { ProbeFlags } from '../flags.ts';
import { perform } from '../perform.ts';
import { printable } from '../render/printable.ts';
import { probeData, renderEarly, renderProbe } from '../render/probe.ts';
import { openTerminal } from '../terminal.ts';

export async function probe(this: CliContext, { json, ...flags }: ProbeFlags, target?: string): Promise<void> {
  const { stdout } = this.node;
  let told = '';
  const onEarly = (servers: readonly EarlyServer[]) => {
    told = renderEarly(servers);
    stdout.write(`${printable(told)}\n`);
  };
  await perform(this, {
    command: 'probe',
    json,
    terminal: openTerminal(this.node, json),
    operation: (context) =>
      runProbe(
        {
          ...flags,
          ...(target === undefined ? {} : { target }),
          ...(json ? {} : { onEarly }),
        },
        context,
      ),
    render: (report) => renderProbe(report, told),
    data: probeData,
    isNo: ({ isWell }) => !isWell,
    failure: ({ refusal }) => refusal,
  });
}
