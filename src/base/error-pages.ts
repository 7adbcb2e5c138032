/**
 * The longer words for each error code: what it means, where to look, what to do. `aerie explain CODE` prints them, and
 * `scripts/write-errors.mjs` writes them to docs/errors/. A code without a page does not compile. Pure.
 */
import { ERRORS, type ErrorCode, EXIT_CODE, type Fault } from './errors.ts';

export interface ErrorPage {
  /** What has happened, and what is safe. */
  readonly means: string;
  /** Where the reason is seen. */
  readonly look: string;
  /** What to type or change, safest first. */
  readonly do: string;
}

const SAME_COMMAND = 'What is committed is safe, and the same command resumes.';

export const ERROR_PAGES: Readonly<Record<ErrorCode, ErrorPage>> = {
  'usage.flag': {
    means: 'A command, flag or argument on the command line is not one that Aerie knows, or one is missing. Nothing was started.',
    look: 'The message names the word, and the nearest one that is known.',
    do: '`aerie --help` lists the commands, `aerie COMMAND --help` the flags of one, with an example to type.',
  },
  'run-file.missing': {
    means: 'The run file or run folder named on the command line is not there, or cannot be read. Nothing was started.',
    look: 'The message has the path that was looked at; a relative path begins at the folder where the command was typed.',
    do: 'Correct the path, or write a run file with `aerie init`.',
  },
  'run-file.wrong': {
    means:
      'The run file has mistakes: wrong YAML, unknown keys, or values that cannot be. All of them are shown at once. Nothing was started.',
    look: 'Each line of evidence has file, line and column, and the nearest key that is known.',
    do: 'Correct each line. An editor that reads the schema named in the first line of the file completes and checks keys as you type.',
  },
  'run-file.differs': {
    means:
      'The run has begun, and the run file (or the server) now says something that would change its data: model, sampling, template, KV type, a source. A trainer could not rely on records made in two ways, so it is refused. Nothing was changed.',
    look: 'Each line of evidence has what differs, as it was and as it is now.',
    do: 'Put it back as it was, or give the new way a name of its own under `run:`. Another server, host or port, a new partition and a higher budget are always allowed.',
  },
  'run.absent': {
    means: 'There is a run file, but its run has not begun; or a folder was given that is no run folder.',
    look: 'A run folder is `runs/NAME` beside the run file and holds `run.yaml` and `ledger.sqlite`.',
    do: '`aerie run RUN` begins it.',
  },
  'source.missing': {
    means:
      'The file, folder or repository that a partition reads its prompts from is not there. What other partitions have committed is safe.',
    look: 'The message has the path and the nearest name beside it. Paths are relative to the run file.',
    do: 'Correct `from:` of the partition, or put the file there, and give the same command again.',
  },
  'source.unreadable': {
    means: 'A source is there and is not what its name says: a folder, a damaged or cut archive, another format.',
    look: 'The message says where reading broke off. Single bad rows are never this error: they are counted in `rejected/`.',
    do: 'Try `gzip -t FILE` on an archive; fetch or write the file again, or name it by what it is (`.jsonl`, `.json`, `.csv`, `.parquet`; see docs/inputs.md).',
  },
  'source.changed': {
    means:
      'The source has other bytes than when its prompts were read (size, time or sha256). The run would mix two data sets, so it is refused. Nothing was changed.',
    look: 'The message has the size then and now.',
    do: 'Put the file back, or add the new rows as a partition of their own. Where nothing has been answered yet, remove the run folder and begin again.',
  },
  'source.row-refused': {
    means:
      'With --strict, the first input row that gives no prompt, or the first prompt that has no room in the context, stops the run. What was answered is committed, and the row or prompt is in no count.',
    look: 'The message has the file, the line (or row), the reason and the beginning of the row.',
    do: 'Correct the row, or run without --strict: refused rows are then counted and named in `rejected/`, and never stop a run.',
  },
  'hub.refused': {
    means:
      'The hub answered that this user may not read the data set: it is private, its terms are not accepted, or the token is wrong.',
    look: 'The message has what the hub said, and whether a token was sent. The token itself is never shown.',
    do: 'Put a token that may read it into `HF_TOKEN`, or download the file by hand and write its path under `from:`.',
  },
  'hub.unreachable': {
    means: 'There was no usable answer from the hub: no network, a proxy, a hub in trouble, or a download that broke off.',
    look: 'The message has what the network or the hub said. `HF_ENDPOINT` names a mirror.',
    do: 'Give the same command again: files that are whole are not fetched twice. Or download the file by hand and write its path under `from:`.',
  },
  'export.target': {
    means: 'The export folder cannot be made, or holds files that Aerie did not write there. Nothing was overwritten.',
    look: 'The message names the folder and what is in it.',
    do: 'Give another folder with `--to FOLDER`, or remove the old one.',
  },
  'policy.forbids': {
    means:
      'The flags of a server in the run file would break a rule under `policy:`. It was refused before anything was started.',
    look: 'The message has the rule, its reason, and who decided it.',
    do: 'Change the flag. If the rule no longer holds, ask the person it names, and change it in the run file.',
  },
  'policy.broken': {
    means:
      'A running server is not what a rule under `policy:` asks for: the server itself says so. Nothing was asked of it, and no record was made from it.',
    look: 'The message has the rule and what the server says about itself.',
    do: 'Start the server as the rule wants it, then give the same command again.',
  },
  'file.exists': {
    means: 'A file that would be written is already there. It was not touched.',
    look: 'The message has its path.',
    do: 'Give another name, or `--force` to replace it.',
  },
  'secret.missing': {
    means:
      'The run file names a secret (`$NAME`), and the environment has no such variable, or an empty one. Nothing was started.',
    look: '`env | grep NAME` in the shell where the command is typed; `sudo`, `ssh` and services drop variables.',
    do: '`export NAME=…` and give the same command again. The value is never written anywhere.',
  },
  'node.version': {
    means: 'Aerie needs Node 20.19 or newer. Nothing was started.',
    look: '`node --version`, and `which node` where several are installed.',
    do: 'Install a newer Node, and give the same command again.',
  },
  'disk.full': {
    means: `The disk (or the quota) that holds the run folder is full. ${SAME_COMMAND}`,
    look: '`df -h RUN-FOLDER`, `df -i RUN-FOLDER` (files can run out too), `quota -s`; `aerie doctor RUN` shows how much the run will need.',
    do: 'Free space, and give the same command again.',
  },
  'disk.read-only': {
    means:
      'The run folder cannot be written by this user: permissions, or a file system mounted read-only. Nothing was started, or what was committed is safe.',
    look: '`ls -ld FOLDER`, `findmnt -T FOLDER`; a disk that failed is remounted read-only, and `dmesg` then says so.',
    do: 'Make the folder writable, or copy the run file (or the whole run folder) to a place that is.',
  },
  'disk.failed': {
    means: `The disk answered with an error, or something stands where a file of the run should be. ${SAME_COMMAND}`,
    look: 'The evidence has the system’s own code (EIO, EISDIR, ENOTDIR …) and the path; for EIO `dmesg` names the disk.',
    do: '`aerie doctor RUN` measures the disk. Put right what the code says, then give the same command again.',
  },
  'disk.network': {
    means:
      'The run folder would lie on a network file system. Locks and fsync there are not what they say: two workers could hold one run, and a record that was shown as done could be lost. Nothing was made.',
    look: '`findmnt -T FOLDER` shows the file system; `aerie doctor FOLDER` says which kinds are refused.',
    do: 'Copy the run file (and its sources, or give absolute paths) to a local disk and run there; copy or export the results to the share afterwards.',
  },
  'ledger.held-elsewhere': {
    means: 'Another worker (or another program) holds this run. One run has one worker; nothing was changed.',
    look: 'The message names the process where it is known; the lock falls with its process, so that process is alive. `fuser RUN-FOLDER/lock.sqlite` finds it.',
    do: 'Watch it with `aerie status RUN`, or end it with `aerie stop RUN`: it drains, commits and ends.',
  },
  'ledger.damaged': {
    means:
      'The ledger is not a whole SQLite file, or the files of the run do not agree with it: something was cut, replaced or removed, or files of two copies were mixed. Nothing was changed by looking.',
    look: 'The evidence has file, what the ledger says and what lies there.',
    do: 'Put back a copy of the run folder: all of it, taken while no worker ran. Without one, what lies in `records/` can still be read line by line; begin a new run for the rest.',
  },
  'control.unanswered': {
    means:
      'A command asked the worker of a run for something, through a file in the `control/` folder of the run, and had no answer. The request was taken back; a worker that had begun with it goes on with it.',
    look: '`aerie status RUN` shows whether the rule is in force; `logs/aerie.log` what the worker did last. It may be waiting for long answers, or for a large model to load.',
    do: 'Wait, or stop the worker with Ctrl-C, and give the same command again: a rule that is there already is not added twice.',
  },
  'control.refused': {
    means:
      'The worker of the run had the request, and could not do it. The rule is not in force unless `aerie status RUN` shows it.',
    look: 'The message has the worker’s own words.',
    do: 'Do what it says, then give the same command again.',
  },
  'ledger.older': {
    means:
      'The run folder was written by an Aerie before its first release; no run of those is carried over. Nothing was changed.',
    look: 'The message has both format numbers. The records below records/ are whole JSON lines.',
    do: 'Give the run another name under `run:` and start it again.',
  },
  'ledger.newer': {
    means: 'The run folder was written by a newer Aerie, in a format this one does not know. Nothing was changed.',
    look: '`aerie --version`; the message has both format numbers.',
    do: 'Use the newer Aerie.',
  },
  'log.unreadable': {
    means:
      'A log that was named is not there, or is not what its name says; or its machine has lost it, and what was kept of it here was shown instead. Nothing was started.',
    look: 'The message has the path and what the system said.',
    do: 'Give the file with the server’s own output, plain or `.gz`, or `-` for stdin.',
  },
  'model.unavailable': {
    means: 'The model file could not be had from any place that was tried. Nothing half-fetched was kept.',
    look: 'Each line of evidence is a place and its reason. `aerie doctor` shows the cache and whether pip is there.',
    do: 'Download a GGUF file in any way you like; `AERIE_MODEL=/path/model.gguf` before the command, or its path as `model:`.',
  },
  'model.damaged': {
    means: 'A model file is not what it should be: no GGUF file, or another size or sha256 than promised. It was not used.',
    look: 'The message has what was expected and what came.',
    do: 'Remove the file and fetch it again; a proxy that answers with a page is a common reason.',
  },
  'model.shape-unknown': {
    means:
      'A plan reads the layers, heads and experts of a model from its `config.json`, and a field that decides memory is not there or is of another kind. Nothing was guessed and nothing was started.',
    look: 'The message names the field.',
    do: 'Give the folder or repository with the whole `config.json`, or start the server once and plan with `--log server.log`: what a log prints replaces every formula.',
  },
  'facts.contradict': {
    means:
      'Measurements given with `--facts` or read from a log cannot be of one launch: free memory before and after the weights, the weights and the pool do not add up by many GiB. Nothing was planned.',
    look: 'The message has the figures. All are per GPU and in GiB; engines print GiB under the name GB.',
    do: 'Take all figures from one log of one launch, and leave out what is not sure: any subset is enough.',
  },
  'gpu.unknown': {
    means: 'A plan needs the memory of the GPU, and no GPU of that name is in the table. Nothing was started.',
    look: 'The message lists the nearest names.',
    do: 'Take one of those, or give what `nvidia-smi --query-gpu=memory.total --format=csv` prints.',
  },
  'engine.missing': {
    means:
      'The embedded engine needs the package node-llama-cpp, which is an optional one and is not installed. Nothing was started.',
    look: '`npm ls node-llama-cpp` beside Aerie; `aerie doctor` loads it and says what stands in its way.',
    do: '`npm install node-llama-cpp@3.21.1`, or attach to a server that is already there (`attach: http://…` in the run file).',
  },
  'machine.refused': {
    means:
      'A machine behind ssh turned Aerie away for a reason that waiting does not mend: its name, its host key, the key of this user, a login that runs no sh, an ssh that is not installed here; or it runs scripts, and its sshd forwards no connection to the port of the server. Nothing was started; a server that runs there goes on.',
    look: 'The message has what ssh said. `ssh -v NAME true` shows each step; the name, its port, its key and any jump host come from your own ssh config. What sshd forwards: as root there, `sshd -T | grep -iE "forwarding|permitopen"`, and the words before the key in `authorized_keys`.',
    do: 'Make the command of the message work: as a rule `ssh NAME true`, without a question (a key in the agent, the host key accepted once); `ssh -V` where ssh is missing here; one that runs `sh` there where a login runs something else. Then give the same command again. Where forwarding is forbidden: allow it (`AllowTcpForwarding local`, `PermitOpen`), attach by an address that this machine reaches (`attach: http://HOST:PORT`), or run aerie on that machine itself.',
  },
  'machine.unreachable': {
    means: `A machine behind ssh was out of reach for longer than \`patience\`, or its answer made no sense. A server that runs there goes on, and nothing there was changed. ${SAME_COMMAND}`,
    look: 'The message has what ssh said. `ssh -v NAME true` shows each step; the name, its port, its key and any jump host come from your own ssh config.',
    do: 'Make the command of the message work (as a rule `ssh NAME true`, without a question), then give the same command again: what runs there is found again.',
  },
  'server.not-launched': {
    means:
      'Before a launch Aerie looks at ports, GPUs and who holds their memory, host memory, disk and flags; what it saw would end the launch. Nothing was started.',
    look: 'The message and the evidence say what was seen: a port that is taken, a process that holds a GPU, too few GPUs, too little host memory or disk, a flag that this version does not take.',
    do: 'Put that right, then give the same command again. A process that holds GPU memory is never ended by itself: end it, or name it once with `--kill-holder PID`.',
  },
  'server.did-not-start': {
    means: `A server that Aerie started ended before it was ready. ${SAME_COMMAND}`,
    look: 'The evidence is the end of its log; the whole log is `logs/NAME.log` in the run folder.',
    do: 'Put right what the log says (memory, a port in use, a model file), then give the same command again.',
  },
  'server.unreachable': {
    means: `A server named by \`attach:\` did not become ready within \`patience\`. ${SAME_COMMAND}`,
    look: 'The message has the last answer: refused, no answer in time, or an HTTP status. `curl -i URL/health` asks it once more.',
    do: 'Start the server or correct `attach:`; raise `patience:` for one that loads slowly.',
  },
  'server.rejects': {
    means: `The server answers and refuses every request: a key, a model name or a field is wrong. ${SAME_COMMAND}`,
    look: 'The message has the status and the server’s own words.',
    do: '401 or 403: `api-key: $NAME`. 404: the model’s name or the base path. 400: the field that the server names. A context that is too short for max-tokens: lower it, or serve with a longer one.',
  },
  'server.gave-up': {
    means: `The server stayed away, or died again and again, and recovery was given up. ${SAME_COMMAND}`,
    look: 'The evidence has the last state and log lines; `logs/` in the run folder has everything.',
    do: 'Put the server right, then give the same command again; unfinished conversations go on where they were.',
  },
  'run.interrupted': {
    means: `Ctrl-C. ${SAME_COMMAND}`,
    look: '`aerie status RUN` shows what is done.',
    do: 'Give the same command again.',
  },
  'run.terminated': {
    means: `The process was told to end (SIGTERM). ${SAME_COMMAND}`,
    look: 'A job scheduler or a service manager sends it at its time limit.',
    do: 'Give the same command again.',
  },
  'run.cut-off': {
    means: `No worker of the run is left, and the last one has not said how it ended: it was killed, or the machine went down. ${SAME_COMMAND}`,
    look: '`journalctl -k` or `dmesg` for the kernel’s out-of-memory killer; `logs/worker.log` in the run folder has the last words of a detached worker.',
    do: 'Give the same command again, with `--detach` where no terminal stays open.',
  },
  'bug.invariant': {
    means: `Aerie met something that it holds to be impossible, and stopped rather than go on. ${SAME_COMMAND}`,
    look: 'The lines of the message, and `logs/aerie.log` in the run folder.',
    do: 'Please report it with those lines.',
  },
};

const WHO: Readonly<Record<Fault, string>> = {
  usage: 'what was typed or written is to be changed',
  environment: 'this machine is to be changed',
  engine: 'the engine is to be looked at',
  stopped: 'stopped early, resumable',
  interrupted: 'stopped by a person, resumable',
  terminated: 'stopped from outside, resumable',
  bug: 'a bug of Aerie',
};

/** One page as Markdown; what `aerie explain CODE` prints and docs/errors/CODE.md holds. */
export function renderErrorPage(code: ErrorCode): string {
  const { fault, title } = ERRORS[code];
  const page = ERROR_PAGES[code];
  return [
    `# ${code}`,
    `${title}. Exit code ${EXIT_CODE[fault]}: ${WHO[fault]}.`,
    `**What it means.** ${page.means}`,
    `**Where to look.** ${page.look}`,
    `**What to do.** ${page.do}`,
    '',
  ]
    .join('\n\n')
    .trimEnd();
}

export function isErrorCode(word: string): word is ErrorCode {
  return Object.hasOwn(ERRORS, word);
}
