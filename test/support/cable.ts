/**
 * The network between here and a server, as a TCP proxy on loopback that a test can pull out.
 *
 * `cut`: every connection is reset and new ones are refused, as where the other machine restarts. `freeze`: nothing is told to
 * anybody; bytes, ends and new connections wait, as with a pulled cable. `mend` ends both: after a cut connections are taken
 * again, after a freeze what waited goes on its way (TCP sends it again).
 */

import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Cable {
  /** Of 127.0.0.1; it stays the same through cuts. */
  readonly port: number;
  cut(): Promise<void>;
  freeze(): void;
  mend(): Promise<void>;
  /** Connections that are open now. */
  readonly connections: number;
  /** How many were ever begun. */
  readonly begun: number;
  /** Bytes that came through, both ways. */
  readonly carried: number;
}

/** From a port of its own to `port` of 127.0.0.1; gone with the test. */
export async function layCable(port: number): Promise<Cable> {
  const cable = new LaidCable(port);
  await cable.mend();
  onTestFinished(() => cable.cut());
  return cable;
}

class LaidCable implements Cable {
  readonly #far: number;
  readonly #ends = new Set<Socket>();
  /** What waits for the end of a freeze, in order; undefined = nothing is frozen. */
  #waiting: (() => void)[] | undefined;
  #server: Server | undefined;
  port = 0;
  begun = 0;
  carried = 0;

  constructor(far: number) {
    this.#far = far;
  }

  get connections(): number {
    return this.#ends.size / 2;
  }

  async cut(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.#waiting = undefined;
    for (const end of this.#ends) end.destroy();
    this.#ends.clear();
    if (server === undefined) return;
    server.close();
    await once(server, 'close');
  }

  freeze(): void {
    this.#waiting ??= [];
  }

  async mend(): Promise<void> {
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const goOn of waiting) goOn();
    if (this.#server !== undefined) return;
    const server = createServer((near) => this.#begin(near));
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('a TCP server has a port');
    this.port = address.port;
    this.#server = server;
  }

  #begin(near: Socket): void {
    this.begun += 1;
    this.#hold(near);
    this.#whenWhole(() => {
      if (near.destroyed) return;
      const far = connect(this.#far, '127.0.0.1');
      this.#hold(far);
      this.#join(near, far);
      this.#join(far, near);
    });
  }

  #hold(end: Socket): void {
    this.#ends.add(end);
    end.setNoDelay(true);
    end.on('error', () => undefined); // 'close' follows
  }

  #join(from: Socket, to: Socket): void {
    from.on('data', (bytes) => this.#whenWhole(() => this.#pass(bytes, from, to)));
    from.on('end', () => this.#whenWhole(() => to.end()));
    from.on('close', () =>
      this.#whenWhole(() => {
        this.#ends.delete(from);
        to.destroySoon();
      }),
    );
  }

  #pass(bytes: Buffer, from: Socket, to: Socket): void {
    if (to.destroyed) return;
    this.carried += bytes.length;
    if (to.write(bytes)) return;
    from.pause();
    to.once('drain', () => from.resume());
  }

  #whenWhole(act: () => void): void {
    if (this.#waiting === undefined) act();
    else this.#waiting.push(act);
  }
}
