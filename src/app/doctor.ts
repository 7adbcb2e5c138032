/**
 * `aerie doctor [FOLDER|RUN]`: is this machine, and the disk where the run folder lies, fit for a run? Everything is measured,
 * nothing is kept: what it writes lies in a folder of its own and is removed. A check that cannot be made says so as its
 * line; only a FOLDER or RUN that is not there is an error.
 */
import { stat } from 'node:fs/promises';
import { freemem, totalmem } from 'node:os';
import { join, resolve } from 'node:path';
import { AerieError } from '../base/errors.ts';
import { nearestExisting } from '../host/find-mount.ts';
import type { Host } from '../host/host.ts';
import { proxyFor } from '../host/proxy-for.ts';
import type { RunSpec } from '../spec/run.ts';
import type { OperationContext } from './context.ts';
import { type DoctorCheck, fails, ok } from './doctor/finding.ts';
import { judgeMemory, judgeNode, judgeOpenFiles, type Needs } from './doctor/judge.ts';
import { judgeProxy } from './doctor/judge-proxy.ts';
import { checkDisk } from './doctor/measure-disk.ts';
import { checkEnginePackage, checkModel, checkPip } from './doctor/measure-engine.ts';
import { checkAttached, checkLaunches } from './doctor/measure-launches.ts';
import { needsOf, openFileLimit } from './doctor/open-files.ts';
import { findRun } from './find-run.ts';

export interface DoctorInput {
  /** A folder, a run file or a run folder; left out: the folder one is in. */
  readonly target?: string;
}

export interface DoctorReport {
  /** Where the run folder lies or would lie. */
  readonly folder: string;
  /** '' where no run was named. */
  readonly run: string;
  readonly checks: readonly DoctorCheck[];
  /** Nothing fails; warnings may be there. */
  readonly isFit: boolean;
}

export async function runDoctor({ target = '.' }: DoctorInput, context: OperationContext): Promise<DoctorReport> {
  const { host, onNote } = context;
  const { folder, run } = await findTarget(target);
  const needs = needsOf(run);
  const checks: DoctorCheck[] = [
    judgeNode({ version: process.versions.node, arch: process.arch, platform: process.platform }),
    judgeMemory(memoryOf()),
    judgeOpenFiles(openFileLimit(), needs),
    ...secretChecks(run, host.env),
    ...proxyChecks(run, host.env),
  ];
  onNote(`measuring the disk of ${folder} …`);
  checks.push(...(await checkDisk(folder, await nearestExisting(folder), needs, host)));
  if (run !== undefined) checks.push(...(await checkLaunches(run, context)), ...(await checkAttached(run, context)));
  // Of a run that starts none, nobody needs to know how the embedded engine is.
  if (run === undefined || needs.embedded) checks.push(...(await checkEmbedded(run, needs, context)));
  return { folder, run: run?.name ?? '', checks, isFit: checks.every(({ verdict }) => verdict !== 'fails') };
}

async function checkEmbedded(run: RunSpec | undefined, needs: Needs, { host, onNote }: OperationContext): Promise<DoctorCheck[]> {
  onNote('loading the embedded engine …');
  return [await checkEnginePackage(needs, host), await checkModel(run?.model ?? 'default', needs, host), await checkPip(host)];
}

/** A folder is looked at as a place for runs, unless it is a run's own folder. */
async function findTarget(target: string): Promise<{ folder: string; run: RunSpec | undefined }> {
  const path = resolve(target);
  const isFolder = (await stat(path).catch(() => undefined))?.isDirectory() === true;
  const isRunFolder = isFolder && (await stat(join(path, 'run.resolved.json')).catch(() => undefined)) !== undefined;
  if (isFolder && !isRunFolder) return { folder: path, run: undefined };
  try {
    const { run } = await findRun(target);
    return { folder: run.folder, run };
  } catch (thrown) {
    // A run folder that has lost its run.yaml is still a folder on a disk.
    if (isRunFolder && thrown instanceof AerieError && thrown.code !== 'run-file.missing')
      return { folder: path, run: undefined };
    throw thrown;
  }
}

/** In a container its own limit counts. */
function memoryOf(): { totalBytes: number; freeBytes: number } {
  const limit = process.constrainedMemory();
  const totalBytes = limit > 0 && limit < totalmem() ? limit : totalmem();
  return { totalBytes, freeBytes: Math.min(freemem(), totalBytes) };
}

/** Of each server that is already there at an address. */
function proxyChecks(run: RunSpec | undefined, env: Host['env']): DoctorCheck[] {
  return (run?.servers ?? []).flatMap(({ name, attach }) =>
    attach?.kind === 'url' ? judgeProxy(name, attach.url, proxyFor(attach.url, env)) : [],
  );
}

function secretChecks(run: RunSpec | undefined, env: Host['env']): DoctorCheck[] {
  const names = new Set(
    run?.servers.flatMap(({ apiKeyName, env: own }) => [
      ...(apiKeyName === undefined ? [] : [apiKeyName]),
      ...Object.values(own).flatMap((value) => ('secret' in value ? [value.secret] : [])),
    ]),
  );
  return [...names].map((name) =>
    env[name] ? ok('secret', `${name} is set`) : fails('secret', `${name} is not set in the environment`, `export ${name}=…`),
  );
}
