/** Which servers of a run file a `server` command is about: those that Aerie launches, or the one that was named. */
import { AerieError } from '../../base/errors.ts';
import type { RunSpec, ServerSpec } from '../../spec/run.ts';

export interface ServerInput {
  /** Run file or run folder. */
  readonly run: string;
  /** Left out: all servers that Aerie launches. */
  readonly server?: string;
}

export function isLaunched({ engine, attach }: ServerSpec): boolean {
  return attach === undefined && (engine === 'sglang' || engine === 'vllm');
}

export function chooseServers(run: RunSpec, { server: name }: ServerInput): ServerSpec[] {
  const launched = run.servers.filter(isLaunched);
  if (name === undefined && launched.length > 0) return launched;
  const chosen = launched.find((server) => server.name === name);
  if (chosen !== undefined) return [chosen];
  const named = run.servers.find((server) => server.name === name);
  const names = launched.map((server) => server.name).join(', ') || 'none';
  throw new AerieError(
    'usage.flag',
    name === undefined
      ? `${run.file} has no server that Aerie launches.`
      : `${name} is no server of ${run.file} that Aerie launches.`,
    {
      because: `Launched are: ${names}. ${named === undefined ? '' : describe(named)}`.trim(),
      remedy:
        'Write engine: sglang or vllm without attach: there. The embedded engine lives and ends with aerie run, and an attached server is never started or stopped.',
    },
  );
}

function describe({ name, attach, engine }: ServerSpec): string {
  return attach === undefined ? `${name} is of the ${engine} engine.` : `${name} is attached to ${attach.written}.`;
}
