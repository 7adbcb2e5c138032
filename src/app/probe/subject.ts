/** One server that is to be probed: what is known of it before anything is asked. */
import type { Redact } from '../../base/redact.ts';
import type { EngineName } from '../../engine/dialect.ts';
import type { ProcessIdentity } from '../../machine/machine.ts';
import type { LaunchRecord } from '../../server/launch/launch-book.ts';
import type { MachineSpec, PolicyRule, RunSpec, ServerSpec } from '../../spec/run.ts';

export interface Subject {
  readonly name: string;
  /** undefined: what it answers tells. */
  readonly engine: EngineName | undefined;
  readonly machine: MachineSpec | undefined;
  /** An address that is asked from here. */
  readonly url: string;
  /** A port of its machine; 0 = not known. */
  readonly port: number;
  /** Where it listens there; '' = loopback. */
  readonly address: string;
  /** Of the docker of its machine, name or id; '' = none, or not known. */
  readonly container: string;
  /** On its machine; '' = where its process writes. */
  readonly logPath: string;
  readonly identity: ProcessIdentity | undefined;
  /** A process that was found by its command line; 0 = none. */
  readonly pid: number;
  readonly statusPath: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly redact: Redact;
  /** A launch of the run file that is over: its log stays where it was. */
  readonly isOver: boolean;
  /** Of a run file. */
  readonly known: KnownServer | undefined;
  /** What can be said of it already, as `was not launched yet`. */
  readonly notes: readonly string[];
}

export interface KnownServer {
  readonly run: RunSpec;
  readonly server: ServerSpec;
  readonly policy: readonly PolicyRule[];
  /** How many Aerie has made of it. */
  readonly launches: number;
  /** Of a launch of Aerie's own. */
  readonly launch: LaunchRecord | undefined;
}

export const UNKNOWN_SUBJECT: Omit<Subject, 'name' | 'redact'> = {
  engine: undefined,
  machine: undefined,
  url: '',
  port: 0,
  address: '',
  container: '',
  logPath: '',
  identity: undefined,
  pid: 0,
  statusPath: '',
  headers: {},
  isOver: false,
  known: undefined,
  notes: [],
};

/** Frames of a survey are named by letters and digits. */
export function statusNameOf({ name }: Subject): string {
  return `s${Buffer.from(name).toString('hex')}`;
}
