/** The end of SGLang's start: what it serves with, the port (which it opens only now), its own warm-up request, ready. */
import { systemCodeOf } from '../../../base/errors.ts';
import { killTree } from './deaths.ts';
import type { Launching } from './launching.ts';
import { SglangLines } from './sglang-lines.ts';

export async function serveSglang(launching: Launching): Promise<void> {
  const { stage, plan, host, flags } = launching;
  const { launch, shape, prediction } = plan();
  const lines = new SglangLines(launch, shape);
  const seconds = stage.enter('engine-initialized', 1);
  stage.say(lines.capacity(prediction.poolTokens, prediction.maxRunningRequests, prediction.freeAfterGraphsGiB), { rank: 0 });
  await stage.wait(seconds);
  const opening = stage.enter('http-bind', 0.5);
  stage.say(`INFO:     Started server process [${process.pid}]`);
  stage.say('INFO:     Waiting for application startup.');
  await stage.wait(opening);
  stage.say('INFO:     Application startup complete.');
  await openPort(launching);
  stage.say(`INFO:     Uvicorn running on http://${host}:${launching.actualPort()} (Press CTRL+C to quit)`);
  if (flags.values['skip-server-warmup'] !== true) await warmUp(launching, lines);
  launching.becomeReady();
  stage.say('The server is fired up and ready to roll!');
}

/** uvicorn finds only now that the port is taken, after the whole load. */
async function openPort(launching: Launching): Promise<void> {
  const { stage, host, port, dying } = launching;
  try {
    await launching.listen();
  } catch (thrown) {
    if (systemCodeOf(thrown) !== 'EADDRINUSE') throw thrown;
    stage.say(`ERROR:    [Errno 98] error while attempting to bind on address ('${host}', ${port}): address already in use`);
    stage.say('INFO:     Waiting for application shutdown.');
    stage.say('INFO:     Application shutdown complete.');
    dying.ranks()?.kill();
    process.exit(1);
  }
}

/** Text for most models; an image for one with a vision tower. */
async function warmUp(launching: Launching, lines: SglangLines): Promise<void> {
  const { stage, plan } = launching;
  const seconds = stage.enter('warmup', 8);
  const hasVision = plan().shape.vision !== undefined;
  await stage.wait(seconds / 8);
  stage.say(`INFO:     127.0.0.1:51234 - "GET ${lines.modelInfoPath()} HTTP/1.1" 200 OK`);
  stage.say(lines.warmupPrefill(hasVision ? 44 : 7), { rank: 0 });
  await stage.wait((seconds * 7) / 8);
  stage.say(`INFO:     127.0.0.1:51240 - "POST ${hasVision ? '/v1/chat/completions' : '/generate'} HTTP/1.1" 200 OK`);
}

/** How often it looks whether it was told to end, and whether its requests are done. */
const DRAIN_LOOK_SECONDS = 5;

/** SIGTERM while it serves: no new health, all requests to their end without a deadline, then the whole tree. */
export async function drainSglang(launching: Launching, remaining: () => number): Promise<never> {
  const { stage, env, dying } = launching;
  stage.say('SIGTERM received. signum=15 frame=None. Draining requests and shutting down...');
  stage.drain();
  if (env['SGL_FORCE_SHUTDOWN'] === '1') return killTree(dying);
  for (;;) {
    await stage.wait(DRAIN_LOOK_SECONDS);
    stage.say(`Gracefully exiting... Remaining number of requests ${remaining()}. Remaining requests remaining_rids=[].`);
    if (remaining() === 0) return killTree(dying);
  }
}
