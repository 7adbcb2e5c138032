import { runServerLogs } from '../../app/server/logs.ts';
import { runServerStart } from '../../app/server/start.ts';
import { runServerStop } from '../../app/server/stop.ts';
import { runServerVerify } from '../../app/server/verify.ts';
import type { CliContext } from '../cli-context.ts';
import type { ServerFlags, ServerLogsFlags, ServerStartFlags } from '../flags.ts';
import { perform } from '../perform.ts';
import { renderServerStart, renderServerStop, renderServerVerify, serverVerifyData } from '../render/server.ts';
import { openTerminal } from '../terminal.ts';

export async function start(this: CliContext, { json, ...input }: ServerStartFlags, run: string): Promise<void> {
  await perform(this, {
    command: 'server start',
    interrupted: 'the waiting ends, the servers go on loading',
    json,
    terminal: openTerminal(this.node, json),
    operation: (context) => runServerStart({ run, ...input }, context),
    render: (report) => renderServerStart(report, run),
  });
}

export async function verify(this: CliContext, { json, ...input }: ServerFlags, run: string): Promise<void> {
  await perform(this, {
    command: 'server verify',
    json,
    terminal: openTerminal(this.node, json),
    operation: (context) => runServerVerify({ run, ...input }, context),
    render: (report) => renderServerVerify(report, run),
    data: serverVerifyData,
    isNo: ({ isWell }) => !isWell,
  });
}

export async function stop(this: CliContext, { json, ...input }: ServerFlags, run: string): Promise<void> {
  await perform(this, {
    command: 'server stop',
    json,
    terminal: openTerminal(this.node, json),
    operation: (context) => runServerStop({ run, ...input }, context),
    render: renderServerStop,
    isNo: ({ isClean }) => !isClean,
  });
}

/** The log goes to stdout as it is; nothing else does. */
export async function logs(this: CliContext, flags: ServerLogsFlags, run: string): Promise<void> {
  const { stdout } = this.node;
  await perform(this, {
    command: 'server logs',
    json: false,
    terminal: openTerminal(this.node, false),
    operation: (context) => runServerLogs({ run, ...flags, onBytes: (bytes) => void stdout.write(bytes) }, context),
    render: undefined,
    failure: ({ failure }) => failure,
  });
}
