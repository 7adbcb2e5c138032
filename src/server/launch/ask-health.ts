/** One question to the health path: which of the four answers came, and after how long. The body is not looked at. */
import type { Health } from '../../diagnosis/live/look.ts';
import type { EngineRequest } from '../../engine/dialect.ts';
import type { Clock } from '../../host/host.ts';
import type { HttpClient, HttpReply } from '../../host/http.ts';
import { openTimeLimit } from '../../host/time-limit.ts';

/** SGLang's own health waits up to 20 s for its scheduler before it says 503. */
export const HEALTH_TIMEOUT_MS = 25_000;

/** `because`: what the connection met, where it was not simply closed. */
export interface AskedHealth {
  readonly health: Health;
  readonly because: string;
}

export async function askHealth(client: HttpClient, request: EngineRequest, clock: Clock, signal: AbortSignal): Promise<Health> {
  const beganAt = clock.elapsed();
  const limit = openTimeLimit(clock, HEALTH_TIMEOUT_MS, signal);
  const reply = await client.send(request, limit.signal);
  limit.close();
  return healthOf(reply, clock.elapsed() - beganAt).health;
}

/** What the reply of a health path says of a server. Packets that are lost on the way are nobody's refusal. */
export function healthOf(reply: HttpReply, afterMs: number): AskedHealth {
  if (reply.kind === 'http') {
    reply.body.take(); // frees the connection's bytes; what they say does not count
    return { health: { kind: 'http', status: reply.status, afterMs }, because: '' };
  }
  if (reply.kind === 'aborted') return { health: { kind: 'timeout', afterMs }, because: '' };
  // undici's own limit for a connection: packets are dropped on the way.
  if (reply.code === 'UND_ERR_CONNECT_TIMEOUT')
    return { health: { kind: 'timeout', afterMs }, because: 'no connection came about' };
  const because = reply.code === 'ECONNREFUSED' ? '' : `${reply.code}: ${reply.text}`.slice(0, 200);
  return { health: { kind: 'refused', afterMs }, because };
}
