/** Where the log of a server that Aerie did not start is to be found, and what is known of whoever writes it. Pure. */
import type { ContainerFacts } from './container-facts.ts';

export type LogPlace =
  | { readonly port: number }
  | { readonly pid: number }
  /** Name or id. */
  | { readonly container: string }
  /** Absolute, or as the machine's `readFile` takes it. */
  | { readonly path: string };

/** The process that listens, or that was asked about. */
export interface SeenProcess {
  readonly pid: number;
  /** Its command line as words; empty where it may not be read. Secrets still stand in it. */
  readonly words: readonly string[];
}

interface Found {
  readonly process?: SeenProcess;
  readonly container?: ContainerFacts;
}

export type ServerLog = Found &
  (
    | {
        readonly kind: 'file';
        /** For people: the name that the file has or had. */
        readonly path: string;
        /** What is read; `/proc/PID/fd/1` where the name leads elsewhere or to nothing. */
        readonly readPath: string;
        /** It has no name any more, and goes with the process. */
        readonly isDeleted: boolean;
      }
    | { readonly kind: 'docker'; readonly container: ContainerFacts }
    | {
        readonly kind: 'journal';
        readonly unit: string;
        /** A unit of a user's own manager. */
        readonly isOfUser: boolean;
        /** This start of the unit; '' = not known, then the unit since the boot. */
        readonly invocation: string;
      }
    | {
        readonly kind: 'none';
        readonly because: string;
        /** What a person may do or type. */
        readonly remedy: string;
      }
  );

export type NoLog = Extract<ServerLog, { kind: 'none' }>;

/** For people: what they would open or type. */
export function nameOfLog(log: ServerLog): string {
  switch (log.kind) {
    case 'file':
      return log.path;
    case 'docker':
      return `docker logs ${log.container.name}`;
    case 'journal':
      return `journalctl ${log.isOfUser ? '--user-unit' : '-u'} ${log.unit}`;
    case 'none':
      return 'its log';
  }
}
