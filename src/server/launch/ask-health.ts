/** One question to the health path: which of the four answers came, and after how long. The body is not looked at. */
import type { Health } from '../../diagnosis/live/look.ts';
import type { EngineRequest } from '../../engine/dialect.ts';
import type { Clock } from '../../host/host.ts';
import type { HttpClient } from '../../host/http.ts';
import { openTimeLimit } from '../../host/time-limit.ts';

/** SGLang's own health waits up to 20 s for its scheduler before it says 503. */
export const HEALTH_TIMEOUT_MS = 25_000;

export async function askHealth(client: HttpClient, request: EngineRequest, clock: Clock, signal: AbortSignal): Promise<Health> {
  const beganAt = clock.elapsed();
  const limit = openTimeLimit(clock, HEALTH_TIMEOUT_MS, signal);
  const reply = await client.send(request, limit.signal);
  limit.close();
  const afterMs = clock.elapsed() - beganAt;
  if (reply.kind === 'http') {
    reply.body.take(); // frees the connection's bytes; what they say does not count
    return { kind: 'http', status: reply.status, afterMs };
  }
  return { kind: reply.kind === 'aborted' ? 'timeout' : 'refused', afterMs };
}
