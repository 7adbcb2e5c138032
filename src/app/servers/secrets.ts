/** Secrets of the run file: named there, read from the environment here, never shown. */
import { AerieError } from '../../base/errors.ts';
import type { Redact } from '../../base/redact.ts';
import type { Host } from '../../host/host.ts';
import type { ServerSpec } from '../../spec/run.ts';

export function secretHeaders(server: ServerSpec, env: Host['env']): Record<string, string> {
  if (server.apiKeyName === undefined) return {};
  const value = env[server.apiKeyName];
  if (value === undefined || value === '') throw missing(server.apiKeyName, `the key of ${server.name}`);
  return { authorization: `Bearer ${value}` };
}

export interface LaunchEnvironment {
  readonly values: Readonly<Record<string, string>>;
  /** As the run file writes them: values, and `$NAME` for secrets. For records and people. */
  readonly told: Readonly<Record<string, string>>;
  /** What must never be shown. */
  readonly secrets: readonly string[];
}

/** The environment of a launch. Throws `secret.missing` where a name of the run file is not set here, unless nothing will be started. */
export function launchEnvironment(server: ServerSpec, env: Host['env'], starts = true): LaunchEnvironment {
  const values: Record<string, string> = {};
  const told: Record<string, string> = {};
  const secrets: string[] = [];
  for (const [name, given] of Object.entries(server.env)) {
    if ('value' in given) {
      values[name] = given.value;
      told[name] = given.value;
      continue;
    }
    const value = env[given.secret];
    told[name] = `$${given.secret}`;
    if (value !== undefined && value !== '') {
      values[name] = value;
      secrets.push(value);
    } else if (starts) throw missing(given.secret, `which env: of ${server.name} names`);
  }
  return { values, told, secrets };
}

function missing(name: string, what: string): AerieError {
  return new AerieError('secret.missing', `${name}, ${what}, is not set in the environment.`, {
    remedy: `export ${name}=… and give the same command again. Nothing was started.`,
  });
}

/** For whoever only looks: a secret that is not set here cannot be hidden here, and is no reason not to look. */
export function secretsAtHand(server: ServerSpec, env: Host['env']): string[] {
  return Object.values(server.env).flatMap((given) => ('secret' in given ? (env[given.secret] ?? []) : []));
}

/** An error quotes what a server or a setup line printed, and that may hold a secret. */
export function redactError(thrown: unknown, redact: Redact): unknown {
  if (!(thrown instanceof AerieError)) return thrown;
  const { because, remedy, evidence, facts } = thrown.detail;
  return new AerieError(
    thrown.code,
    redact(thrown.message),
    {
      remedy: redact(remedy),
      ...(because === undefined ? {} : { because: redact(because) }),
      ...(evidence === undefined ? {} : { evidence: evidence.map(redact) }),
      ...(facts === undefined ? {} : { facts }),
    },
    thrown.cause,
  );
}
