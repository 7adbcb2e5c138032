/** What a command gets: the real process for its output, and a host that is built only when a command needs the world. */
import type { CommandContext, StricliProcess } from '@stricli/core';
import type { OperationContext } from '../app/context.ts';

export type MakeHost = () => Promise<OperationContext['host']>;

export interface CliContext extends CommandContext {
  readonly process: StricliProcess;
  readonly node: NodeJS.Process;
  readonly makeHost: MakeHost;
}
