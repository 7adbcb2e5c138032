/**
 * A way from a port of this machine to a port of the other one: an ssh of its own that forwards it, and that is started again
 * whenever it ends, on the same port.
 *
 *   connecting ─ its shell says a word ─▶ forwarding ─ ssh took the port ─▶ open ─ ssh ended ─▶ away ─ 0.25 … 5 s ─▶ connecting
 *
 * Promises: `isOpen` only while ssh holds the port; a path that is dead without having told is noticed by ssh after 15 s
 * (ServerAlive); the ssh ends when our side is gone, by SIGKILL too, because its shell there waits for its stdin to close.
 * The forward is asked for over ssh's control socket and stands on no command line of the connection: there a port of the user's
 * own config that is taken would end it (ExitOnForwardFailure), and options that leave those out would leave out ours.
 * On failure: it is tried again until `close`; where waiting cannot help, twice a minute, because a server may lock out who insists.
 */
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { type HeldProcess, holdProcess } from '../../host/held-process.ts';
import type { Host } from '../../host/host.ts';
import { runPiped } from '../../host/piped-command.ts';
import { pickPort } from '../../host/ports.ts';
import type { Reach } from '../machine.ts';
import { explainLost } from './lost-words.ts';
import { renderControl, renderSsh, type Sharing } from './ssh-command.ts';

export interface ReachRequest {
  readonly host: Host;
  readonly target: string;
  readonly sharing: Sharing;
  /** Where it listens there. */
  readonly address: string;
  readonly port: number;
}

/** In words that every login shell hands on as they are. */
const HOLD = `exec sh -c 'echo aerie-way; exec cat >/dev/null'`;
const WORD = 'aerie-way';

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5_000;
const IN_VAIN_WAIT_MS = 30_000;
/** As for a script: ConnectTimeout, twice for a jump host, and a slow login. */
const OPEN_MS = 30_000;
/** ssh ends at SIGTERM at once. */
const STOP_MS = 2_000;

export async function openReach(request: ReachRequest): Promise<Reach> {
  const way = new Way(request, await pickPort());
  way.begin();
  return way;
}

class Way implements Reach {
  readonly #request: ReachRequest;
  readonly #localPort: number;
  readonly #closing = new AbortController();
  #life: Promise<void> = Promise.resolve();
  #isOpen = false;
  #drops = 0;

  constructor(request: ReachRequest, localPort: number) {
    this.#request = request;
    this.#localPort = localPort;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${this.#localPort}`;
  }

  isOpen(): boolean {
    return this.#isOpen;
  }

  drops(): number {
    return this.#drops;
  }

  begin(): void {
    this.#life = this.#live();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#life;
  }

  async #live(): Promise<void> {
    const { clock } = this.#request.host;
    let waitMs = FIRST_WAIT_MS;
    while (!this.#closing.signal.aborted) {
      const { wasOpen, isInVain } = await this.#connectOnce();
      if (wasOpen) waitMs = FIRST_WAIT_MS;
      await clock.sleep(isInVain ? IN_VAIN_WAIT_MS : waitMs, this.#closing.signal);
      waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
    }
  }

  /** One ssh, from its start to its end. */
  async #connectOnce(): Promise<{ readonly wasOpen: boolean; readonly isInVain: boolean }> {
    const { host, target, sharing } = this.#request;
    const socket = sharing.kind === 'shared' ? `${sharing.folder}/way-${randomBytes(6).toString('hex')}` : 'none';
    let hear = (_word: 'word'): void => undefined;
    const heard = new Promise<'word'>((resolve) => {
      hear = resolve;
    });
    const ssh = holdProcess({
      ...renderSsh(host, target, ['ControlMaster=yes', `ControlPath=${socket}`, 'ControlPersist=no'], HOLD),
      hearLine: (line) => line === WORD && hear('word'),
    });
    const stop = () => void ssh.stop(STOP_MS);
    this.#closing.signal.addEventListener('abort', stop, { once: true });
    if (this.#closing.signal.aborted) stop();
    const tooLong = setTimeout(stop, OPEN_MS);
    const first = await Promise.race([heard, ssh.ended]);
    if (first === 'word') this.#isOpen = await this.#forward(ssh, socket);
    clearTimeout(tooLong);
    const wasOpen = this.#isOpen;
    const { code, stderr } = await ssh.ended;
    this.#isOpen = false;
    this.#closing.signal.removeEventListener('abort', stop);
    if (wasOpen && !this.#closing.signal.aborted) this.#drops += 1;
    await rm(socket, { force: true }).catch(() => undefined); // ssh removes it, unless it was killed
    return { wasOpen, isInVain: explainLost(stderr, code, first === 'word').isConfiguration };
  }

  /** Asks the ssh that runs for the forward; where it is not to be had, that ssh is ended and all is tried again. */
  async #forward(ssh: HeldProcess, socket: string): Promise<boolean> {
    const { host, target, address, port } = this.#request;
    const there = address.includes(':') ? `[${address}]` : address;
    const forward = `127.0.0.1:${this.#localPort}:${there}:${port}`;
    const asked = await runPiped({
      ...renderControl(host, target, socket, forward),
      input: new Uint8Array(),
      hear: () => false,
      signal: this.#closing.signal,
    });
    if (asked.kind === 'ended' && asked.code === 0) return true;
    await ssh.stop(STOP_MS);
    return false;
  }
}
