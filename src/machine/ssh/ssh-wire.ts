/**
 * A shell behind the system's ssh: one ssh for each script, all of them over one connection that ssh keeps (ControlMaster).
 *
 * Promises (`shell-wire.ts`): a script that ended is told with its status and its bytes; one that did not is `timeout` where the
 * machine still answers and `lost` where it does not. At most four at once; the others wait. `close` ends what runs.
 * On failure: `lost` with ssh's own words; `isConfiguration` where waiting cannot help. A script that may repeat is repeated by
 * `patience.ts`, not here.
 */
import { randomBytes } from 'node:crypto';
import type { Host } from '../../host/host.ts';
import { runPiped } from '../../host/piped-command.ts';
import type { ShellReply, ShellRequest, ShellWire } from '../shell-wire.ts';
import { explainLost } from './lost-words.ts';
import { REMOTE_COMMAND, renderInput, scriptStderr } from './remote-shell.ts';
import { ReplyFrame } from './reply-frame.ts';
import { Slots } from './slots.ts';
import { checkTarget, openSharing, renderSsh, type Sharing, type SshCommand, sharingOptions } from './ssh-command.ts';

export interface SshWire extends ShellWire {
  /** Ends the scripts under way. The shared connection ends by itself a minute later: other runs may use it. */
  close(): Promise<void>;
}

export interface SshWireOptions {
  /** Asked for each script, because what cleans a temporary folder takes ours away. Left out: a folder of this user's below the system's one. */
  readonly sharing?: () => Sharing;
}

const AT_ONCE = 4;
const MOST_BYTES = 64 * 2 ** 20;
/** From the start of ssh to a shell that has read its script: ConnectTimeout, twice for a jump host, and a slow login. */
const OPEN_MS = 30_000;

export function openSshWire(target: string, host: Host, { sharing = openSharing }: SshWireOptions = {}): SshWire {
  checkTarget(target);
  return new Wire(() => renderSsh(host, target, sharingOptions(sharing()), REMOTE_COMMAND));
}

type Cut = 'timeout' | 'aborted' | 'silent';

class Wire implements SshWire {
  readonly #command: () => SshCommand;
  readonly #slots = new Slots(AT_ONCE);
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  constructor(command: () => SshCommand) {
    this.#command = command;
  }

  async run(request: ShellRequest): Promise<ShellReply> {
    const owners = [this.#closing.signal, ...(request.signal === undefined ? [] : [request.signal])];
    const owner = AbortSignal.any(owners);
    if (!(await this.#slots.take(owner))) return { kind: 'aborted' };
    const running = this.#send(request, owner).finally(() => {
      this.#running.delete(running);
      this.#slots.give();
    });
    this.#running.add(running);
    return running;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled([...this.#running]);
  }

  async #send(request: ShellRequest, owner: AbortSignal): Promise<ShellReply> {
    const reply = await this.#sendOnce(request, owner);
    if (reply.kind !== 'timeout') return reply;
    // A path that is dead without having told looks like a script that takes too long.
    const probe = await this.#sendOnce({ script: ':', timeoutMs: OPEN_MS }, owner);
    return probe.kind === 'ended' || probe.kind === 'timeout' ? reply : probe;
  }

  async #sendOnce(request: ShellRequest, owner: AbortSignal): Promise<ShellReply> {
    const nonce = randomBytes(16).toString('hex');
    const input = renderInput({ outlives: false, ...request, nonce });
    const frame = new ReplyFrame(nonce, request.most ?? MOST_BYTES);
    const limit = openLimit(owner);
    limit.wait(OPEN_MS, 'silent');
    const end = await runPiped({
      ...this.#command(),
      input,
      signal: limit.signal,
      hear: (bytes) => {
        const wasOpen = frame.hasBegun;
        frame.push(bytes);
        if (frame.hasBegun && !wasOpen) {
          this.#slots.isConnected = true;
          limit.wait(request.timeoutMs, 'timeout');
        }
        return frame.code !== undefined;
      },
    });
    limit.close();
    if (frame.code !== undefined) {
      const stderr = end.kind === 'absent' ? '' : scriptStderr(end.stderr, nonce);
      return { kind: 'ended', code: frame.code, stdout: frame.stdout, stderr };
    }
    if (end.kind === 'cut' && limit.cut !== 'silent') return { kind: limit.cut };
    this.#slots.isConnected = false;
    if (end.kind === 'cut') return { kind: 'lost', because: `no answer within ${OPEN_MS / 1000} s`, isConfiguration: false };
    if (end.kind === 'absent') return { kind: 'lost', because: end.because, isConfiguration: true, lacks: 'ssh' };
    return { kind: 'lost', ...explainLost(end.stderr.replace(`${nonce}\n`, ''), end.code, frame.hasBegun) };
  }
}

interface Limit {
  readonly signal: AbortSignal;
  /** Why it was cut. */
  readonly cut: Cut;
  /** From now on; replaces the wait before. */
  wait(ms: number, cut: Cut): void;
  close(): void;
}

function openLimit(owner: AbortSignal): Limit {
  const aborter = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let cut: Cut = 'aborted';
  const abort = () => aborter.abort();
  owner.addEventListener('abort', abort, { once: true });
  if (owner.aborted) abort();
  return {
    signal: aborter.signal,
    get cut() {
      return cut;
    },
    wait(ms, why) {
      clearTimeout(timer);
      timer = setTimeout(() => {
        cut = why;
        abort();
      }, ms);
    },
    close() {
      clearTimeout(timer);
      owner.removeEventListener('abort', abort);
    },
  };
}
