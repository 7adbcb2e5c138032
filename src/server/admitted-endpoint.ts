/**
 * The endpoint of one server: admitted when the server says something new of itself or another process answers, kept while it says
 * the same, together with its connections.
 *
 * Promises: there is one at most; the connections of one that is replaced are closed before the next has any.
 * On failure: a server that cannot say what it is now is not ready, with a sentence; one that says what may not be (`admit`) throws.
 */
import type { Emit } from '../base/events.ts';
import { type FoundTemplate, NO_TEMPLATE } from '../base/prompt-template.ts';
import type { Dialect, ServerFacts } from '../engine/dialect.ts';
import type { Host } from '../host/host.ts';
import type { Reach } from '../machine/machine.ts';
import { type Control, type Endpoint, readFacts } from './endpoint.ts';
import { sayExactness } from './say-exactness.ts';

export interface EndpointOptions {
  readonly name: string;
  readonly dialect: Dialect;
  /** The run file's name for the model, for servers that list several. */
  readonly model: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  /** A way of our own leads to it, and no proxy. */
  readonly isDirect: boolean;
  /** Another answer than before: another process is there, though it may say the same of itself. '' = not to be told. */
  readonly whoAnswers?: () => Promise<string>;
  /** Checks what the server really is and records the launch. May throw an AerieError: then the server has failed. */
  readonly admit: (facts: ServerFacts, baseUrl: string, template: FoundTemplate) => Admitted | Promise<Admitted>;
  /** The chat template of its model; asked for only where this version's prompts are rendered here. Left out: there is none. */
  readonly findTemplate?: (facts: ServerFacts, signal: AbortSignal) => Promise<FoundTemplate>;
  /** Told each time a new endpoint is there. */
  readonly onReady: (endpoint: Endpoint) => void;
  readonly host: Host;
  readonly emit: Emit;
}

export interface Admitted {
  /** Id of the launch row in the ledger. */
  readonly launch: number;
  /** What the server is, where more is known than it says of itself. */
  readonly facts: ServerFacts;
}

/** `abandoned`: the asking was ended meanwhile, and nothing is known. */
export type Renewal =
  | { readonly kind: 'ready' }
  | { readonly kind: 'not-ready'; readonly seen: string }
  | { readonly kind: 'abandoned' };

/** Where it is asked. `reach`: the way there; undefined where it is this machine's own and cannot be lost. */
export interface Place {
  readonly baseUrl: string;
  readonly reach: Reach | undefined;
}

export class AdmittedEndpoint {
  readonly #options: EndpointOptions;
  #current: Endpoint | undefined;
  /** What the server last said of itself. */
  #told = '';
  #answering = '';
  #contextTokens = 0;

  constructor(options: EndpointOptions) {
    this.#options = options;
  }

  get current(): Endpoint | undefined {
    return this.#current;
  }

  /** Its context when it was last ready; 0 = not known. */
  get contextTokens(): number {
    return this.#contextTokens;
  }

  /** Its facts are read each time: what answers now may be another process with other flags at the same address. */
  async renew(control: Control, place: Place): Promise<Renewal> {
    const { dialect, model: wanted, name, whoAnswers, emit } = this.#options;
    const facts = await readFacts(control, { dialect, server: name, model: wanted });
    if (control.signal.aborted) return { kind: 'abandoned' };
    if (typeof facts === 'string') return { kind: 'not-ready', seen: facts };
    const answering = (await whoAnswers?.()) ?? '';
    if (control.signal.aborted) return { kind: 'abandoned' };
    const told = JSON.stringify(facts);
    // The current one is looked at here and no earlier: it may be cut meanwhile.
    const isSame = this.#current?.control === control.client && this.#told === told && this.#answering === answering;
    if (!isSame) {
      const endpoint = await this.#admit(control, place, facts);
      const { launch } = endpoint;
      const { model, contextTokens } = facts;
      const ids = sayExactness(endpoint);
      emit({ kind: 'server.ready', subject: name, facts: { baseUrl: place.baseUrl, launch, model, contextTokens, ...ids } });
    }
    this.#told = told;
    this.#answering = answering;
    return { kind: 'ready' };
  }

  async #admit(control: Control, { baseUrl, reach }: Place, facts: ServerFacts): Promise<Endpoint> {
    const { name, dialect, host, headers, connections, isDirect, findTemplate, admit, onReady } = this.#options;
    const template = dialect.renderedTurns?.isNeeded(facts) === true ? await findTemplate?.(facts, control.signal) : undefined;
    const { launch, facts: known } = await admit(facts, baseUrl, template ?? NO_TEMPLATE);
    const before = this.#current;
    const isSameClient = before?.control === control.client;
    if (!isSameClient) await this.close();
    const turns = isSameClient ? before.turns : host.openHttp({ baseUrl, connections, headers, isDirect });
    const drops = reach === undefined ? {} : { drops: () => reach.drops() };
    const shared = { server: name, dialect, facts: known, launch, turns, control: control.client, ...drops };
    const endpoint: Endpoint = template === undefined ? shared : { ...shared, template };
    this.#current = endpoint;
    this.#contextTokens = known.contextTokens;
    onReady(endpoint);
    return endpoint;
  }

  /** What is under way will never be answered: its connections are ended, and the next answer is admitted anew. */
  async cut(): Promise<void> {
    const cut = this.#current;
    this.#current = undefined;
    await cut?.turns.close();
  }

  async close(): Promise<void> {
    const endpoint = this.#current;
    this.#current = undefined;
    await endpoint?.turns.close();
    await endpoint?.control.close();
  }
}
