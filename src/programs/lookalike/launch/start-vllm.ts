/**
 * A start of vLLM, phase after phase, as its log shows it. Its port is taken at once and listens only when the engine is ready, so a
 * port that is not free ends it at once; it has no warm-up request of its own. It ends ready, or dies where its arithmetic or a fault says so.
 */
import { createServer } from 'node:net';
import { cudaTotalGiB } from '../../../capacity/estimate-memory.ts';
import { dieOfRank } from './deaths.ts';
import { framesOf } from './frames.ts';
import { eachRank, type Launching, takeRendezvous } from './launching.ts';
import { loadVllm } from './load-vllm.ts';
import { stand } from './stage.ts';
import { engineConfig, nonDefaultArgs } from './vllm-lines.ts';

export async function startVllm(launching: Launching): Promise<void> {
  await parseArguments(launching);
  await makeDevices(launching);
  await meet(launching);
  await loadVllm(launching);
  await serve(launching);
}

async function parseArguments(launching: Launching): Promise<void> {
  const { stage, plan, flags, model } = launching;
  const { launch, shape } = plan();
  const importing = stage.enter('model-import', 10);
  stage.write(`${stage.stamp('INFO')} [__init__.py:241] Automatically detected platform cuda.\n`);
  await stage.wait(importing);
  const parsing = stage.enter('argument-parsing', 2);
  stage.say(`vLLM API server version ${launch.version}`, { place: 'api_server.py:1805' });
  stage.say(nonDefaultArgs(model, flags.values), { place: 'utils.py:326' });
  const [refusal] = launch.refusals;
  if (refusal !== undefined) giveUp(launching, `ValueError: ${refusal}`);
  if (!(await isPortFree(launching))) giveUp(launching, 'OSError: [Errno 98] Address already in use');
  await stage.wait(parsing);
  const resolving = stage.enter('model-resolution', 8);
  stage.say(`Resolved architecture: ${shape.architecture}`, { place: 'model.py:547' });
  stage.say(`Using max model len ${launch.contextTokens}`, { place: 'model.py:1510' });
  stage.say(`Chunked prefill is enabled with max_num_batched_tokens=${launch.prefillChunkTokens}.`, {
    place: 'scheduler.py:205',
  });
  await stage.wait(resolving);
}

function giveUp({ stage }: Launching, error: string): never {
  stage.write(
    `Traceback (most recent call last):\n  File "/opt/venv/bin/vllm", line 8, in <module>\n    sys.exit(main())\n${error}\n`,
  );
  process.exit(1);
}

/** The real one keeps the socket from here on; this one can only look. */
function isPortFree({ host, port }: Launching): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ host, port }, () => probe.close(() => resolve(true)));
  });
}

async function makeDevices(launching: Launching): Promise<void> {
  const { stage, plan, model, flags } = launching;
  const { launch, gpu } = plan();
  const seconds = stage.enter('device-init', 12);
  const served = flags.values['served-model-name'];
  stage.say(engineConfig(model, launch, typeof served === 'string' ? served : model), { isCore: true, place: 'core.py:93' });
  const isMany = launch.tp * launch.pp > 1;
  const titles: string[] = [];
  eachRank(launching, (rank) => titles.push(isMany ? `VLLM::Worker_TP${rank}` : 'VLLM::EngineCore'));
  launching.startRanks(titles);
  await stage.wait(seconds);
  const total = cudaTotalGiB(gpu);
  const wanted = Math.ceil(total * launch.memoryFraction * 1024) / 1024;
  const others = launching.measure().map((free, rank) => ({ rank, free: Math.min(total, free) }));
  const [short] = others.filter(({ free }) => free < wanted).sort((a, b) => a.free - b.free);
  if (short === undefined) return;
  dieOfRank(launching.dying, {
    rank: short.rank,
    frames: framesOf('vllm', 'device-init'),
    error: `ValueError: Free memory on device cuda:${short.rank} (${short.free.toFixed(2)}/${total.toFixed(2)} GiB) on startup is less than desired GPU memory utilization (${launch.memoryFraction}, ${wanted.toFixed(2)} GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.`,
  });
}

async function meet(launching: Launching): Promise<void> {
  const { stage, plan, scenario, env } = launching;
  const { launch } = plan();
  const seconds = stage.enter('distributed-init', 4);
  await takeRendezvous(launching);
  const world = launch.tp * launch.pp;
  if (world > 1) eachRank(launching, (rank) => stage.say('vLLM is using nccl==2.27.5', { rank, place: 'pynccl.py:103' }));
  else
    stage.say('world_size=1 rank=0 local_rank=0 distributed_init_method=tcp://127.0.0.1:51235 backend=nccl', {
      rank: 0,
      place: 'parallel_state.py:1200',
    });
  const cure = env[scenario.hangsUnlessEnv];
  if (scenario.hangsUnlessEnv !== '' && (cure === undefined || cure === '' || cure === '0')) await stand();
  await stage.wait(seconds);
  eachRank(launching, (rank) =>
    stage.say(
      `rank ${rank} in world size ${world} is assigned as DP rank 0, PP rank ${Math.floor(rank / launch.tp)}, TP rank ${rank % launch.tp}, EP rank ${rank % launch.tp}`,
      {
        rank,
        place: 'parallel_state.py:1134',
      },
    ),
  );
}

const ROUTES = [
  '/openapi.json',
  '/health',
  '/load',
  '/ping',
  '/tokenize',
  '/detokenize',
  '/v1/models',
  '/version',
  '/v1/chat/completions',
  '/v1/completions',
  '/metrics',
];

async function serve(launching: Launching): Promise<void> {
  const { stage, host } = launching;
  const seconds = stage.enter('http-bind', 1);
  stage.say("Supported_tasks: ['generate']", { place: 'api_server.py:1611' });
  stage.say(`Starting vLLM API server 0 on http://${host}:${launching.port}`, { place: 'api_server.py:1880' });
  stage.say('Available routes are:', { place: 'launcher.py:29' });
  for (const route of ROUTES)
    stage.say(`Route: ${route}, Methods: ${route.startsWith('/v1/c') ? 'POST' : 'GET'}`, { place: 'launcher.py:37' });
  stage.say(`INFO:     Started server process [${process.pid}]`);
  stage.say('INFO:     Waiting for application startup.');
  await stage.wait(seconds);
  await launching.listen();
  launching.becomeReady();
  stage.say('INFO:     Application startup complete.');
}

/** SIGTERM while it serves: what is in flight is aborted. */
export function shutDownVllm({ stage, dying }: Launching): never {
  stage.drain();
  stage.say('Shutting down FastAPI HTTP server.', { place: 'launcher.py:101' });
  stage.say('INFO:     Shutting down');
  stage.say('INFO:     Waiting for application shutdown.');
  stage.say('INFO:     Application shutdown complete.');
  dying.ranks()?.kill();
  process.exit(0);
}
