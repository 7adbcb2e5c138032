/**
 * A way from a port of this machine to a port of the other one: an ssh of its own that forwards it, and that is started again
 * whenever it ends, on the same port.
 *
 *   connecting ─ its shell says a word ─▶ forwarding ─ ssh took the port ─▶ tried ─▶ open ─ ssh ended ─▶ away ─ 0.25 … 5 s ─▶ connecting
 *                                                                              └─ turned away three times of three ─▶ refused ─ 30 s ─▶ connecting
 *
 * Promises: `isOpen` only while ssh holds the port and sshd there lets through; a path that is dead without having told is noticed by ssh after 15 s
 * (ServerAlive); the ssh ends when our side is gone, by SIGKILL too, because its shell there waits for its stdin to close.
 * The forward is asked for over ssh's control socket and stands on no command line of the connection: there a port of the user's
 * own config that is taken would end it (ExitOnForwardFailure), and options that leave those out would leave out ours.
 * A way is tried by a connection and a word after it: sshd answers in the order in which it was asked, so that a refusal has been
 * heard when the word is back. A server there sees a connection that says nothing.
 * On failure: it is tried again until `close`; where waiting cannot help, twice a minute, because a server may lock out who insists.
 * A machine that was never reached, and lets nobody in, is `refusal` too.
 */
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import type { AerieError } from '../../base/errors.ts';
import { type HeldProcess, holdProcess } from '../../host/held-process.ts';
import type { Host } from '../../host/host.ts';
import { runPiped } from '../../host/piped-command.ts';
import { knock, pickPort } from '../../host/ports.ts';
import type { Reach } from '../machine.ts';
import { isProhibition, refusedForward } from './forwarding.ts';
import { explainLost } from './lost-words.ts';
import {
  makeSocketFolder,
  nameOfTarget,
  openSharing,
  programName,
  renderControl,
  renderSsh,
  type Sharing,
} from './ssh-command.ts';
import { refusedMachine } from './what-to-try.ts';

export interface ReachRequest {
  readonly host: Host;
  readonly target: string;
  /** Asked for each connection. Left out: as scripts have it. */
  readonly sharing?: () => Sharing;
  /** Where it listens there. */
  readonly address: string;
  readonly port: number;
  /** The machine was reached before, though not by this way: what refuses it now may pass. */
  readonly wasReached: () => boolean;
}

/** In words that every login shell hands on as they are. */
const HOLD = `exec sh -c 'echo aerie-way; exec cat'`;
const WORD = 'aerie-way';
/** The level at which ssh says why it has not forwarded a connection. */
const SAYS_WHY = 'LogLevel=INFO';

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5_000;
const IN_VAIN_WAIT_MS = 30_000;
/** As for a script: ConnectTimeout, twice for a jump host, and a slow login. */
const OPEN_MS = 30_000;
/** A setting of sshd refuses always; a limit that passes is over by then, after 0.25 s and 0.5 s more. */
const TRIES = 3;
/** ssh writes a refusal before the word, into another pipe. */
const SETTLE_MS = 20;
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
  /** At least once. */
  #wasOpen = false;
  #drops = 0;
  #refusal: AerieError | undefined;
  /** What ssh has said of connections that were forbidden, by the ssh of now. */
  #prohibitions: string[] = [];

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

  refusal(): AerieError | undefined {
    return this.#refusal;
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
    const { host, target, sharing = openSharing } = this.#request;
    const { socket, leftover } = await placeSocket(sharing());
    const words = new Words();
    this.#prohibitions = [];
    const ssh = holdProcess({
      ...renderSsh(host, target, ['ControlMaster=yes', `ControlPath=${socket}`, 'ControlPersist=no', SAYS_WHY], HOLD),
      hearLine: (line) => words.hear(line),
      hearError: (line) => isProhibition(line) && this.#prohibitions.push(line),
    });
    const stop = () => void ssh.stop(STOP_MS);
    this.#closing.signal.addEventListener('abort', stop, { once: true });
    if (this.#closing.signal.aborted) stop();
    const tooLong = setTimeout(stop, OPEN_MS);
    const hasBegun = (await Promise.race([words.next(), ssh.ended])) === 'word';
    if (hasBegun) this.#isOpen = (await this.#forward(ssh, socket)) && (await this.#isLetThrough(ssh, words));
    clearTimeout(tooLong);
    const wasOpen = this.#isOpen;
    const end = await ssh.ended;
    this.#isOpen = false;
    this.#closing.signal.removeEventListener('abort', stop);
    if (wasOpen && !this.#closing.signal.aborted) this.#drops += 1;
    await rm(leftover, { recursive: true, force: true }).catch(() => undefined);
    this.#wasOpen ||= wasOpen;
    const lost = end.isAbsent ? absent(end.stderr) : explainLost(end.stderr, end.code, hasBegun);
    if (lost.isConfiguration && !this.#wasOpen && !this.#request.wasReached())
      this.#refusal = refusedMachine(lost, { name: nameOfTarget(target), program: programName(host), target });
    const isRefused = !wasOpen && this.#refusal !== undefined;
    return { wasOpen, isInVain: isRefused || lost.isConfiguration };
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
  /** Whether sshd lets connections through; one that says no to all of them is ended. */
  async #isLetThrough(ssh: HeldProcess, words: Words): Promise<boolean> {
    const { host, target, address, port } = this.#request;
    for (let tries = 1; tries <= TRIES; tries++) {
      const before = this.#prohibitions.length;
      const leave = await knock(this.#localPort);
      const heard = words.next();
      ssh.say(WORD);
      const end = await Promise.race([heard, ssh.ended]);
      await host.clock.sleep(SETTLE_MS, this.#closing.signal);
      leave();
      if (end !== 'word') return false;
      const said = this.#prohibitions[before];
      if (said === undefined) {
        this.#refusal = undefined;
        return true;
      }
      if (tries === TRIES) this.#refusal = refusedForward({ name: nameOfTarget(target), address, port, said, tries });
      else await host.clock.sleep(FIRST_WAIT_MS * tries, this.#closing.signal);
    }
    await ssh.stop(STOP_MS);
    return false;
  }
}

/** Where ssh binds its socket, which it removes unless it is killed; `leftover` is what may lie there then. */
async function placeSocket(sharing: Sharing): Promise<{ readonly socket: string; readonly leftover: string }> {
  const own = sharing.kind === 'shared' ? undefined : await makeSocketFolder();
  const folder = sharing.kind === 'shared' ? sharing.folder : own;
  const socket = folder === undefined ? 'none' : `${folder}/way-${randomBytes(6).toString('hex')}`;
  return { socket, leftover: own ?? socket };
}

function absent(because: string) {
  return { because, isConfiguration: true, lacks: 'ssh' } as const;
}

/** What the shell there says, word for word; a login shell may print something between. */
class Words {
  #heard = (): void => undefined;

  hear(line: string): void {
    if (line === WORD) this.#heard();
  }

  /** Asked for before what it answers is said. */
  next(): Promise<'word'> {
    return new Promise((resolve) => {
      this.#heard = () => resolve('word');
    });
  }
}
