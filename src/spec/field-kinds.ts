/** Kinds of value that several keys of the run file share, each with the sentence for a value that does not fit. Pure. */
import { z } from 'zod';
import { countBits } from '../base/element-type.ts';
import { parseTokens } from '../base/units.ts';
import { parseDuration } from './duration.ts';
import { isHubPath, parseHubPath } from './hub-path.ts';
import type { Attachment } from './run.ts';

/** Names become folder names on every system: no slash, no leading dot, short enough below any path limit. */
const NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}$/;
const NAME_RULE = 'must have 1 to 64 of the characters A-Z a-z 0-9 . _ - and must not start with a dot: it becomes a folder name';

export const name = () => z.string().regex(NAME, { error: NAME_RULE });
export const text = () => z.string().regex(/\S/, { error: 'is empty text' });

/** `20M`, `20k`, 20000: at least 1, below 2^53 so that it stays exact. */
export const count = (rule: string) =>
  z.union(
    [
      z.int().min(1, { abort: true }), // abort: a union reports its own rule only where every branch has given up
      z
        .string()
        .regex(/^\s*\d[\d_]*(\.\d+)?\s*[kKmMgGbB]?\s*$/, { abort: true })
        .refine((written) => isCount(parseTokens(written)), { abort: true }),
    ],
    { error: rule },
  );

/** A type that engines keep numbers in, under any of its names. */
export const elementType = () =>
  z
    .string()
    .refine((written) => countBits(written) !== undefined, { error: 'must be the name of a type, as bf16, f16 or fp8_e4m3' });

export const duration = () =>
  z
    .string()
    .refine((written) => parseDuration(written) !== undefined, { error: 'must be a time with its unit, as 90s, 15m or 2h' });

function isCount(value: number | undefined): boolean {
  return value !== undefined && value >= 1 && Number.isSafeInteger(value);
}

/** A name of the ssh config, or a host: never something that ssh could take for an option or a shell for a word of its own. */
const SSH_NAME = '[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_])?|\\[[0-9A-Fa-f:.]+\\]';
const SSH_USER = '(?:[A-Za-z0-9_][A-Za-z0-9_.+-]*@)?';
const PORT = '[0-9]{1,5}';
/** Only the form with a scheme may have a port: `gpu-box:22` is a name to ssh. */
const SSH_MACHINE = new RegExp(`^(?:ssh://${SSH_USER}(?:${SSH_NAME})(?::${PORT})?|${SSH_USER}(?:${SSH_NAME}))$`);
const SSH_SERVER = new RegExp(`^ssh://(${SSH_USER}(?:${SSH_NAME})):(${PORT})$`);
const DOCKER_SERVER = /^docker:\/\/([A-Za-z0-9][A-Za-z0-9_.-]*)$/;

/** The port of an ssh destination is the port of its sshd. */
export const sshMachine = () =>
  z
    .string()
    .regex(SSH_MACHINE, { error: 'must be an ssh name, as gpu-box or ssh://root@gpu-box; more belongs into your ssh config' });

/** `ssh://BOX:PORT` of an attachment names the port of the server; the port of sshd comes from the ssh config. */
export function parseAttach(
  written: string,
): Attachment | { readonly kind: 'ssh'; readonly machine: string; readonly port: number } {
  const ssh = SSH_SERVER.exec(written);
  if (ssh?.[1] !== undefined) return { kind: 'ssh', machine: `ssh://${ssh[1]}`, port: Number(ssh[2]) };
  const docker = DOCKER_SERVER.exec(written);
  if (docker?.[1] !== undefined) return { kind: 'docker', written, container: docker[1] };
  // Requests carry their whole path, and people paste the address with the `/v1` of other clients.
  const url = written.replace(/\/+$/, '').replace(/\/v1$/, '');
  return { kind: 'url', written: url, url };
}

const ATTACH_RULE =
  'must be http://HOST:PORT, https://…, ssh://BOX:PORT (the port of the server on that machine) or docker://NAME';

export const attachment = () =>
  z
    .string()
    .refine((written) => /^(https?|ssh|docker):\/\/[^/]/i.test(written), { error: ATTACH_RULE, abort: true })
    .check((context) => {
      const mistake = explainAttach(context.value);
      if (mistake !== undefined) context.issues.push({ code: 'custom', message: mistake, input: context.value });
    });

function explainAttach(written: string): string | undefined {
  if (/^https?:/i.test(written)) return explainUrl(written);
  if (written.startsWith('docker://'))
    return DOCKER_SERVER.test(written) ? undefined : 'is no container; write docker://NAME, as docker ps shows it';
  const port = Number(SSH_SERVER.exec(written)?.[2]);
  if (port >= 1 && port <= 65_535) return undefined;
  return 'must name the machine and the port of the server on it, as ssh://gpu-box:30000; users, keys and ports of ssh belong into your ssh config';
}

export const secretName = () =>
  z.string().regex(/^\$[A-Za-z_][A-Za-z0-9_]*$/, {
    error:
      'must be the name of an environment variable with a dollar sign, as $VLLM_KEY; the key itself never stands in a run file',
  });

/** Names that a shell can export. */
export const envName = () =>
  z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, { error: 'must be the name of an environment variable: letters, digits and _' });

/** `$NAME` is a secret by name; numbers and switches are what people write without quotes. */
export const envValue = () =>
  z.union([z.string().regex(/^[^\0\n]*$/, { abort: true }), z.number(), z.boolean()], {
    error: 'must be text on one line, or $NAME for what the environment variable NAME holds',
  });

/** Lines for a shell. A zero byte would cut them in a place that nobody sees. */
export const shellLines = () => z.string().regex(/^[^\0]*[^\0\s][^\0]*$/, { error: 'must be lines for a shell, and not empty' });

/** One line for a shell: what comes after it belongs to the same command. A folded text of YAML ends with a line end. */
export const shellLine = () =>
  z.string().regex(/^[^\0\n]*[^\0\s][^\0\n]*\n?$/, { error: 'must be one line for a shell, and not empty' });

/** A path on the machine of the server; relative ones are taken from the run file. */
export const machinePath = () =>
  z
    .string()
    .regex(/^[^\0\n]*[^\0\s][^\0\n]*$/, { error: 'must be a path on one line', abort: true })
    .regex(/^[^~]/, { error: 'begins with ~, which only a shell understands; write the path out' });

function explainUrl(written: string): string | undefined {
  if (!URL.canParse(written)) return 'is no URL that can be read; write it as http://gpu-1:8000';
  const url = new URL(written);
  if (url.username !== '' || url.password !== '') return 'holds a user or password; name the key with api-key: $NAME instead';
  if (url.search !== '' || url.hash !== '') return 'must end with the host, port or path; leave out what begins with ? or #';
  return undefined;
}

export const sourcePath = () =>
  text().check((context) => {
    const mistake = explainSource(context.value);
    if (mistake !== undefined) context.issues.push({ code: 'custom', message: mistake, input: context.value, continue: true }); // else the union around it would not say it
  });

function explainSource(written: string): string | undefined {
  if (written.startsWith('~')) return 'begins with ~, which only a shell understands; write the path out';
  if (isHubPath(written))
    return parseHubPath(written) === undefined
      ? 'is no file of a data set on the hub; write it as hf://datasets/OWNER/NAME/data/train-*.parquet, with @REVISION after NAME for another than main'
      : undefined;
  return /^[a-z][a-z0-9+.-]+:\/\//i.test(written)
    ? 'must be a path on this machine or hf://datasets/OWNER/NAME/FILE; no other URL is read, so download it first'
    : undefined;
}
