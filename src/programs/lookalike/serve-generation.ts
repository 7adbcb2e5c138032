/**
 * The life of one generation request:
 *
 *   received ──► refused                          answered at once; no fault looks at it
 *            ──► waiting ──► answered             after its latency, or by a launch's scheduler; perhaps spoiled by a fault
 *            ──► hanging ──► aborted              when the client goes away
 *            ──► cut | reset ──► aborted          by a fault
 *            ──► the program dies                 by a fault; the journal has only "received"
 *
 * Promise: the journal has "received" before anything else happens, "answered" before the first byte leaves, and "aborted" whenever
 * the whole answer did not leave.
 */
import type { ServerResponse } from 'node:http';
import { sha256Hex } from '../../base/ids.ts';
import type { LookalikeClock } from './clock.ts';
import { planAnswer, sayText } from './compose-answer.ts';
import { drawLatency, randomFrom } from './draw.ts';
import type { FaultTable } from './faults.ts';
import type { Journal, JournalSubject } from './journal.ts';
import { type OutgoingReply, type PartsWithoutUsage, renderAnswer, renderStatus } from './render-outcome.ts';
import type { Fault, Scenario } from './scenario.ts';
import { answerServed, refuseForPool } from './serving/answer.ts';
import type { Serving } from './serving/serving.ts';
import type { Settings } from './settings.ts';
import type { Ask, Reading, Shape } from './shapes.ts';

export interface Stats {
  received: number;
  answered: number;
  aborted: number;
  inFlight: number;
  maxInFlight: number;
}

export interface Lookalike {
  readonly settings: Settings;
  readonly scenario: Scenario;
  readonly clock: LookalikeClock;
  readonly journal: Journal;
  readonly faults: FaultTable;
  readonly life: string;
  readonly stats: Stats;
  /**
   * Where it lives as a real launcher (`--as`): requests go through its scheduler, and the scenario's latency counts for nothing.
   * Left out: it is a surface and nothing more.
   */
  readonly serving?: Serving;
  die(exitCode: number | undefined): void;
}

/** One request under way. */
interface Flight {
  readonly lookalike: Lookalike;
  readonly shape: Shape;
  readonly subject: JournalSubject;
  readonly response: ServerResponse;
  readonly startedAt: number;
  endedBy: 'client-gone' | 'cut' | 'reset';
  cancelTimer: () => void;
}

export function serveGeneration(lookalike: Lookalike, shape: Shape, body: string, response: ServerResponse): void {
  const reading = boundByPool(lookalike, shape, shape.read(body, lookalike.settings, lookalike.scenario));
  const flight = receive(lookalike, shape, reading, body, response);
  if ('refusal' in reading.result) {
    const { status, body: refusal } = reading.result.refusal;
    send(flight, renderStatus(status, refusal, ''));
  } else {
    const fault = lookalike.faults.strike(flight.subject.request, {
      promptText: reading.promptText,
      lastText: reading.lastText ?? reading.promptText,
    });
    proceed(flight, reading.result.ask, fault);
  }
}

function boundByPool({ serving }: Lookalike, shape: Shape, reading: Reading): Reading {
  if (serving === undefined || 'refusal' in reading.result) return reading;
  const refusal = refuseForPool(serving, shape, reading.result.ask);
  return refusal === undefined ? reading : { ...reading, result: { refusal } };
}

function receive(lookalike: Lookalike, shape: Shape, { input, seed }: Reading, body: string, response: ServerResponse): Flight {
  const { stats, journal, clock } = lookalike;
  stats.received += 1;
  stats.inFlight += 1;
  stats.maxInFlight = Math.max(stats.maxInFlight, stats.inFlight);
  const hash = sha256Hex(input === undefined ? body : JSON.stringify(input));
  const subject = { request: stats.received, path: shape.path, hash, seed };
  journal.received(subject, input ?? null);
  const flight: Flight = {
    lookalike,
    shape,
    subject,
    response,
    startedAt: clock.elapsed(),
    endedBy: 'client-gone',
    cancelTimer() {},
  };
  response.on('close', () => {
    flight.cancelTimer();
    stats.inFlight -= 1;
    if (response.writableFinished) return;
    stats.aborted += 1;
    journal.aborted(subject, flight.endedBy);
  });
  return flight;
}

function proceed(flight: Flight, ask: Ask, fault: Fault | undefined): void {
  const { lookalike, response } = flight;
  switch (fault?.do) {
    case 'hang':
    case 'health-lies':
      break;
    case 'die':
      lookalike.clock.after(fault.ms, () => lookalike.die(fault.exitCode)); // even if this client has gone by then
      break;
    case 'reset':
      flight.endedBy = 'reset';
      later(flight, fault.ms, () => response.socket?.resetAndDestroy());
      break;
    case 'status':
      later(flight, fault.ms, () => send(flight, renderFaultStatus(flight.shape, fault)));
      break;
    default:
      answerLater(flight, ask, fault);
  }
}

function answerLater(flight: Flight, ask: Ask, fault: Fault | undefined): void {
  const { lookalike, subject, startedAt } = flight;
  const { scenario, settings, clock } = lookalike;
  const seed = subject.seed ?? settings.seed;
  const slowMs = fault?.do === 'slow' ? fault.ms : 0;
  if (lookalike.serving !== undefined) {
    void answerFromScheduler(flight, lookalike.serving, { ask, fault, seed, slowMs });
    return;
  }
  const planned = planAnswer(seed, ask.promptIds, scenario.answerTokens, ask.maxTokens);
  const random = randomFrom('latency', String(settings.seed), String(subject.request));
  later(flight, drawLatency(scenario.latency, planned.tokens, random) + slowMs, () => {
    const answer = fault?.do === 'say' ? sayText(fault.text, ask.promptIds, ask.maxTokens) : planned.compose();
    give(flight, ask, fault, { answer, elapsedMs: clock.elapsed() - startedAt, cachedTokens: 0 }); // no prefix cache here
  });
}

interface Scheduled {
  readonly ask: Ask;
  readonly fault: Fault | undefined;
  readonly seed: number;
  readonly slowMs: number;
}

async function answerFromScheduler(flight: Flight, serving: Serving, { ask, fault, seed, slowMs }: Scheduled): Promise<void> {
  const { lookalike, response, shape } = flight;
  const id = idOf(flight);
  flight.cancelTimer = () => serving.scheduler.abort(id);
  const ended = await answerServed(serving, { id, ask, seed, fault, path: shape.path, length: lookalike.scenario.answerTokens });
  if (response.destroyed) return;
  if (ended.kind === 'failed')
    send(flight, renderStatus(500, shape.renderError(500, 'Request aborted: the KV cache is full.'), ''));
  else if (slowMs === 0) give(flight, ask, fault, ended);
  else later(flight, slowMs, () => give(flight, ask, fault, ended));
}

type Given = Pick<PartsWithoutUsage, 'answer' | 'elapsedMs' | 'cachedTokens' | 'retractions'>;

function give(flight: Flight, ask: Ask, fault: Fault | undefined, given: Given): void {
  const { lookalike, shape } = flight;
  const { scenario, settings, clock } = lookalike;
  const base = {
    id: idOf(flight),
    model: settings.servedModelName,
    createdAt: clock.now(),
    promptIds: ask.promptIds,
    ...given,
    ids: idsOf(lookalike, ask),
    splitsReasoning: scenario.splitsReasoning,
    hasTools: ask.hasTools ?? false,
  };
  const reply = renderAnswer(shape, base, fault);
  if (fault?.do === 'cut') cut(flight, reply);
  else send(flight, reply);
}

const idOf = ({ lookalike, subject }: Flight): string => `${lookalike.life}-${subject.request}`;

function idsOf({ scenario, serving }: Lookalike, { metaInfo = false, tokenIds = false }: Ask): PartsWithoutUsage['ids'] {
  if (scenario.ids === 'always' || (scenario.ids === 'asked' && tokenIds))
    return serving?.life.engine === 'sglang' ? 'sglang-choice' : 'choice';
  return scenario.ids === 'meta-info' && metaInfo ? 'meta-info' : 'none';
}

/** Cancelled when the connection closes first. */
function later(flight: Flight, ms: number, act: () => void): void {
  flight.cancelTimer = flight.lookalike.clock.after(ms, act);
}

function renderFaultStatus(shape: Shape, { status, body, retryAfterSeconds }: Extract<Fault, { do: 'status' }>): OutgoingReply {
  return renderStatus(
    status,
    body ?? shape.renderError(status, `The lookalike was told to answer ${status}.`),
    'status',
    retryAfterSeconds,
  );
}

function send({ lookalike, subject, response }: Flight, reply: OutgoingReply): void {
  lookalike.journal.answered(subject, reply.journal);
  lookalike.stats.answered += 1;
  response.writeHead(reply.status, reply.headers).end(reply.body);
}

/** Headers that promise the whole body, half of it, and the connection is gone. */
function cut(flight: Flight, reply: OutgoingReply): void {
  flight.endedBy = 'cut';
  const half = Buffer.from(reply.body).subarray(0, reply.body.length >> 1);
  flight.response.writeHead(reply.status, reply.headers).write(half, () => flight.response.destroy());
}
