/**
 * docker, podman and srun, which start the engine somewhere else: why they did not, and why they ended it. Their words stand in the log
 * of the engine, because they share it.
 */
import { advise, type Rule } from '../rule.ts';
import { type CompiledSign, compileSign, matchSign } from '../sign.ts';

/** Nothing of the engine ran: the words of the client are all there is. */
const NOT_STARTED = { state: 'crashed', weight: 'root' } as const;

const CONTAINER_RULES: readonly Rule[] = [
  {
    ...NOT_STARTED,
    code: 'container-name-taken',
    title: 'a container of that name is there already',
    signs: ['Conflict. The container name', 'the container name {} is already in use by', 'that name is already in use'],
    restartSameFlagsHelps: false,
    remedy: advise(
      'Leave --name out of command: (Aerie finds its container by a label), or look what it is (docker ps -a --filter name=NAME) and, if nobody needs it, docker rm NAME. Nothing was started, and the other container was not touched.',
    ),
    meaning: 'Docker keeps a name until its container is removed, also when that has ended. No two have the same.',
    mistakenFor: 'a server that already runs',
    example:
      'docker: Error response from daemon: Conflict. The container name "/sglang" is already in use by container "4f1c09". You have to remove (or rename) that container to be able to reuse that name.',
  },
  {
    ...NOT_STARTED,
    code: 'container-image-missing',
    title: 'the image is not there, and could not be fetched by that name',
    signs: [
      'pull access denied for',
      'repository does not exist or may require',
      'manifest unknown',
      { text: 'manifest for {} not found' },
      'No such image:',
      'did not resolve to an alias',
      'invalid reference format',
    ],
    restartSameFlagsHelps: false,
    remedy: advise(
      'Look for a slip in the name and the tag of the image in command:, and try it on that machine: docker pull IMAGE. A private one wants docker login there first. Nothing was started.',
    ),
    meaning:
      'Neither the machine nor the registry has an image of that name, or the registry shows it to nobody who is not logged in.',
    mistakenFor: 'a fault of the network',
    example:
      "docker: Error response from daemon: pull access denied for sglang, repository does not exist or may require 'docker login': denied: requested access to the resource is denied.",
  },
  {
    ...NOT_STARTED,
    code: 'container-registry-unreachable',
    title: 'the image could not be fetched: the registry did not answer, or wanted less of it',
    signs: ['Error response from daemon: Get "https://', 'toomanyrequests:', 'pinging container registry'],
    restartSameFlagsHelps: true,
    remedy: advise(
      'Try it on that machine: docker pull IMAGE. Where it reaches no registry, docker save IMAGE | ssh BOX docker load brings it from one that does. Nothing was started.',
    ),
    meaning: 'The image is not on the machine, and the way to the registry is closed, slow, or used up for this hour.',
    mistakenFor: 'a wrong name of the image',
    example:
      'docker: Error response from daemon: Get "https://registry.example/v2/": net/http: request canceled while waiting for connection',
  },
  {
    code: 'container-image-stalled',
    title: 'the image of the container does not arrive: no layer of it for an hour',
    state: 'hung',
    weight: 'root',
    signs: [],
    phase: 'image-fetch',
    restartSameFlagsHelps: true,
    remedy: advise(
      'Fetch it by hand on that machine, where a bar shows whether bytes come: docker pull IMAGE. Look at its way to the registry, and at the disk below docker info --format {{.DockerRootDir}}. Layers that have come are kept.',
    ),
    meaning:
      'The client prints a line for each layer; the largest of an engine take minutes to half an hour each, and none takes an hour.',
    mistakenFor: 'an engine that hangs: none has been started',
    example: 'f3a1c2b4d5e6: Pulling fs layer',
  },
  {
    ...NOT_STARTED,
    code: 'docker-not-permitted',
    title: 'this user may not speak to docker',
    signs: ['permission denied while trying to connect to the Docker', 'trying to connect to the docker API at'],
    restartSameFlagsHelps: false,
    remedy: advise(
      'Write sudo docker run … where sudo asks for no password there, or have the user put into the group (sudo usermod -aG docker NAME, then log in anew: ssh -O exit ends a connection that is kept), or use podman. Nothing was started.',
    ),
    meaning: 'The socket of docker belongs to root and to a group, and the user that runs the command is in neither.',
    mistakenFor: 'a docker that does not run',
    example:
      'docker: permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: dial unix: connect: permission denied.',
  },
  {
    ...NOT_STARTED,
    code: 'docker-not-running',
    title: 'docker does not run on that machine',
    signs: ['Cannot connect to the Docker daemon', 'Is the docker daemon running', 'unable to connect to Podman'],
    restartSameFlagsHelps: true,
    remedy: advise(
      'See why, and start it there: systemctl status docker; sudo systemctl start docker. Where DOCKER_HOST or a context names another one, look there. Nothing was started.',
    ),
    meaning: 'Nobody listens at the socket that the client asks.',
    mistakenFor: 'a lack of rights',
    example: 'docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?',
  },
  {
    ...NOT_STARTED,
    code: 'container-without-gpu',
    title: 'docker cannot give a GPU to the container',
    signs: ['could not select device driver', 'nvidia-container-cli: ', 'unresolvable CDI devices'],
    restartSameFlagsHelps: false,
    remedy: advise(
      'Install and register the NVIDIA Container Toolkit there (sudo nvidia-ctk runtime configure --runtime=docker; sudo systemctl restart docker, which ends the containers that run), then try: docker run --rm --gpus all IMAGE nvidia-smi. Nothing was started.',
    ),
    meaning:
      'A GPU in a container needs a helper of the driver beside docker; it is not installed, not registered, or does not find the driver.',
    mistakenFor: 'a GPU that is missing',
    example: 'docker: Error response from daemon: could not select device driver "" with capabilities: [[gpu]].',
  },
  {
    ...NOT_STARTED,
    code: 'container-not-started',
    title: 'docker did not start the container, for the reason that it gives',
    weight: 'wrapper',
    signs: [
      'docker: Error response from daemon:',
      "See 'docker run --help'",
      'OCI runtime create failed',
      'crun: executable file',
    ],
    restartSameFlagsHelps: false,
    remedy: advise(
      'Read its last lines; the command as it was given stands in servers/NAME.json of the run folder. Correct the options before the image in command:, or the launcher behind it. No engine was started.',
    ),
    meaning: 'The client ends with 125 where docker refuses, with 126 or 127 where what stands behind the image cannot be run.',
    mistakenFor: 'a fault of the engine',
    example:
      'docker: Error response from daemon: invalid mount config for type "bind": bind source path does not exist: /models.',
  },
];

const SLURM_RULES: readonly Rule[] = [
  {
    code: 'slurm-time-limit',
    title: 'Slurm ended the job: its time was over',
    state: 'crashed',
    weight: 'root',
    signs: ['CANCELLED AT {} DUE TO TIME LIMIT'],
    restartSameFlagsHelps: true,
    // Less time than a load takes is never enough.
    restartAfterStartFailed: false,
    remedy: advise(
      'Give it more: srun --time=D-HH:MM:SS in command:, as much as the partition allows (sinfo -o "%P %l"). A new job waits in the queue anew; what was answered is committed, and the same command goes on.',
    ),
    meaning:
      'A job has a limit of time, its own or that of its partition; at its end Slurm sends SIGTERM, and SIGKILL half a minute later.',
    mistakenFor: 'a crash of the engine',
    example: 'slurmstepd: error: *** STEP 4242.0 ON gpu3 CANCELLED AT 2026-01-31T02:00:00 DUE TO TIME LIMIT ***',
  },
  {
    code: 'slurm-preempted',
    title: 'Slurm took the node away for a job that goes before this one',
    state: 'crashed',
    weight: 'root',
    signs: ['CANCELLED AT {} DUE TO PREEMPTION', 'CANCELLED AT {} DUE TO JOB REQUEUE'],
    restartSameFlagsHelps: true,
    remedy: advise(
      'It is put into the queue again. To be left in peace: another --partition or --qos in command:, of those that nobody preempts (sacctmgr show qos format=name,preempt). What was answered is committed.',
    ),
    meaning: 'Jobs of some partitions and classes give way to others.',
    mistakenFor: 'a crash of the engine',
    example: 'slurmstepd: error: *** STEP 4242.0 ON gpu3 CANCELLED AT 2026-01-31T02:00:00 DUE TO PREEMPTION ***',
  },
  {
    code: 'slurm-node-failed',
    title: 'the node of the job failed',
    state: 'crashed',
    weight: 'root',
    signs: ['CANCELLED AT {} DUE TO NODE FAILURE', 'srun: error: Node failure on', 'UNCORRECTABLE MEMORY ERROR AT'],
    restartSameFlagsHelps: true,
    remedy: advise(
      'Another node is asked for. Where the same one comes again: srun --exclude=NODE in command:, and tell the admins (sinfo -R says what they know). What was answered is committed.',
    ),
    meaning: 'Slurm does not hear from the node any more, or its hardware reported a fault.',
    mistakenFor: 'a crash of the engine',
    example:
      'slurmstepd: error: *** STEP 4242.0 ON gpu3 CANCELLED AT 2026-01-31T02:00:00 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***',
  },
  {
    code: 'slurm-cancelled',
    title: 'somebody cancelled the job',
    state: 'crashed',
    // Slurm also cancels what is left of a step in which something else failed first.
    weight: 'symptom',
    signs: [
      { text: '*** STEP {} CANCELLED AT', not: ['DUE TO'] },
      { text: '*** JOB {} CANCELLED AT', not: ['DUE TO'] },
      'srun: error: Job allocation {} has been revoked',
    ],
    restartSameFlagsHelps: false,
    remedy: advise(
      'Ask who did and why, you or an admin (sacct -j JOB -o JobID,State,End shows CANCELLED by UID): it is not started against their will. What was answered is committed; the same command puts it into the queue again.',
    ),
    meaning: 'It was ended with scancel, by its owner or an admin, or by a rule of the site that says no more than that.',
    mistakenFor: 'a crash of the engine, or the end of its time, which Slurm names',
    example: 'slurmstepd: error: *** STEP 4242.0 ON gpu3 CANCELLED AT 2026-01-31T02:00:00 ***',
  },
  {
    code: 'slurm-unreachable',
    title: 'the controller of Slurm does not answer',
    state: 'crashed',
    weight: 'root',
    signs: ['Unable to contact slurm controller', 'srun: error: {} Socket timed out on send/recv operation'],
    restartSameFlagsHelps: true,
    remedy: advise('Look on that machine: scontrol ping. It passes, or the admins know. Nothing was started.'),
    meaning: 'Its daemon slurmctld is down, is being restarted, or has too much to do.',
    mistakenFor: 'a request that Slurm refuses',
    example: 'srun: error: Unable to allocate resources: Unable to contact slurm controller (connect failure)',
  },
  {
    code: 'slurm-refused',
    title: 'Slurm does not take the job as it is asked for',
    state: 'crashed',
    weight: 'symptom',
    signs: [
      'srun: error: Unable to allocate resources',
      'srun: error: Unable to create step',
      'srun: fatal: ',
      'srun: unrecognized option',
      'srun: error: Invalid ',
    ],
    restartSameFlagsHelps: false,
    remedy: advise(
      'The reason stands in that line: correct --partition, --account, --time, --gpus or --gres in command: (sinfo and sacctmgr show associations user=$USER say what there is). Nothing was started.',
    ),
    meaning: 'No node can ever give what is asked, or this account may not ask it.',
    mistakenFor: 'a queue that is long',
    example: 'srun: error: Unable to allocate resources: Requested time limit is invalid (missing or exceeds some limit)',
  },
];

export const CLIENT_RULES: readonly Rule[] = [...CONTAINER_RULES, ...SLURM_RULES];

/** What a client says when it is only asked, in the words of the rule that knows it; undefined: no rule does. */
export function explainClient(said: string): { readonly title: string; readonly remedy: string } | undefined {
  const lines = said.split('\n');
  const rule = CLIENT_RULES.find(({ signs }) => signs.some((sign) => lines.some((line) => matchSign(compiled(sign), line))));
  if (rule === undefined) return undefined;
  const facts = { lines: 0, arguments: {}, isReady: false, retractions: 0, samples: [] };
  return { title: rule.title, remedy: rule.remedy({ facts, numbers: {} }).text };
}

function compiled(sign: Rule['signs'][number]): CompiledSign {
  return compileSign(typeof sign === 'string' ? { text: sign } : sign);
}
