import { expect, test } from 'vitest';
import { checkClientCommand } from './check-client-command.ts';
import { checkNodes } from './check-nodes.ts';
import { renderPath } from './problem.ts';

const SERVER = ['servers', 0];
const check = (server: object) =>
  [checkClientCommand, checkNodes]
    .flatMap((one) => one({ servers: [{ engine: 'sglang', ...server }] }, SERVER))
    .map(({ path, message }) => `${renderPath(path).replace('servers[0].', '')} ${message}`);

const IMAGE = 'IMG python3 -m sglang.launch_server';

test.each<[object, string]>([
  [{ command: `docker run -d ${IMAGE}` }, 'command has -d; leave it out'],
  [{ command: `docker run -it ${IMAGE}` }, 'command has -t; leave it out (-i too)'],
  [{ command: `docker run --restart unless-stopped ${IMAGE}` }, 'command has --restart unless-stopped'],
  [{ command: `docker run --network none ${IMAGE}` }, 'command has --network none, where Aerie does not reach'],
  [{ command: 'docker run --gpus all' }, 'command has no image'],
  [{ command: 'docker run --gpus all lmsysorg/sglang:latest' }, 'command ends with the image lmsysorg/sglang:latest'],
  [{ command: `docker run ${IMAGE}`, flags: { host: '127.0.0.1' } }, 'command has a network of its own, and host: 127.0.0.1'],
  [{ command: `docker run -p 9000:8000 ${IMAGE}`, port: 8000 }, 'command publishes port 8000 of the container as 9000'],
  [{ command: `docker run -p 8000 ${IMAGE}`, flags: { port: 8000 } }, 'command publishes port 8000 of the container as any port'],
  [{ command: `cd /x && docker run ${IMAGE}` }, 'command has docker run in a place where Aerie cannot read it'],
  [{ command: 'srun python3 -m x' }, 'command starts the engine on a node that Slurm chooses'],
  [{ command: 'srun -J mine python3 -m x', flags: { host: '0.0.0.0' } }, 'command has -J/--job-name'],
  [{ command: 'srun', flags: { host: '0.0.0.0' } }, 'command has no program'],
  [{ command: 'srun -l x', flags: { host: '0.0.0.0' } }, 'command has -l/--label'],
])('%j is refused', (server, expected) => {
  expect(check(server)).toEqual([expect.stringContaining(expected)]);
});

test.each<object>([
  { command: `sudo docker run --gpus all --rm -i --shm-size 32g -v /m:/m ${IMAGE}` },
  { command: `docker run --network=host ${IMAGE}`, flags: { host: '127.0.0.1' } },
  { command: `docker run -p 127.0.0.1:8000:8000 -p 9000:9000 ${IMAGE}`, port: 8000 },
  { engine: 'vllm', command: 'docker run --runtime nvidia vllm/vllm-openai:v0.10.2', flags: { host: '0.0.0.0' } },
  { command: 'srun -N1 -n 1 --gpus=8 python3 -m sglang.launch_server', flags: { host: '0.0.0.0' } },
  { command: 'python3 -m sglang.launch_server' },
  { engine: 'openai', attach: 'http://x', command: 'docker run -d' },
  { command: 5 },
])('%j is not', (server) => expect(check(server)).toEqual([]));

test.each<[object, string, string]>([
  [{ flags: { nnodes: 2, 'node-rank': 0 } }, 'flags.nnodes is 2, which spreads', '--node-rank 1 on the second'],
  [{ flags: { '--node_rank': 1 } }, 'flags.--node_rank is 1, which spreads', 'attach: http://NODE0:30000'],
  [{ flags: { 'dist-init-addr': '10.0.0.5:20000' } }, 'flags.dist-init-addr is 10.0.0.5:20000', '--dist-init-addr NODE0:20000'],
  [{ flags: { nnodes: '2', 'dist-init-addr': 'gpu-1:5' } }, '(so does dist-init-addr, which is gpu-1:5)', 'attach:'],
  [{ engine: 'vllm', flags: { 'distributed-executor-backend': 'ray' } }, 'is ray, which spreads', 'ray start --head'],
  [{ engine: 'vllm', flags: { headless: true } }, 'flags.headless is set', 'attach: http://NODE0:8000'],
  [{ engine: 'vllm', flags: { nnodes: 4 } }, 'flags.nnodes is 4', 'attach:'],
  [{ engine: 'vllm', flags: { dp: 4, dpl: 2 } }, 'flags.dpl is 2 of 4 data-parallel ranks', 'attach:'],
  [{ engine: 'vllm', flags: { 'data-parallel-address': '10.0.0.5' } }, 'flags.data-parallel-address is 10.0.0.5', 'attach:'],
  [{ command: 'srun -N 2 x', flags: { host: '0.0.0.0' } }, 'command has srun -N 2', 'attach:'],
  [{ command: 'srun --ntasks=8 x', flags: { host: '0.0.0.0' } }, 'command has srun with 8 tasks', 'attach:'],
  [{ command: 'srun -w gpu[1-2] x', flags: { host: '0.0.0.0' } }, 'command has srun -w with several nodes', 'attach:'],
])('%j goes over several nodes, and the recipe is given once', (server, expected, recipe) => {
  const problems = check(server);
  expect(problems).toEqual([expect.stringContaining(expected)]);
  expect(problems.join()).toContain(recipe);
});

test.each<object>([
  { flags: { nnodes: 1, 'node-rank': 0, 'dist-init-addr': '127.0.0.1:5000', tp: 8 } },
  { flags: { 'dist-init-addr': 'localhost:5000' } },
  { engine: 'vllm', flags: { 'distributed-executor-backend': 'mp', dp: 4, 'data-parallel-size-local': 4, headless: false } },
  { engine: 'vllm', flags: { 'data-parallel-address': 'tcp://127.0.0.1:5', 'master-addr': '::1' } },
  { attach: 'http://x', flags: { nnodes: 2 } },
])('%j stays on one', (server) => expect(check(server)).toEqual([]));
