/** The sentences for a data set of the hub that cannot be had: what the hub said, and what to type. Pure; never a token. */
import { AerieError, diskCodeOf, systemCodeOf } from '../base/errors.ts';
import { formatCount } from '../base/units.ts';
import { type HubAccess, HubError } from '../host/hub-files.ts';
import type { HubPath } from '../spec/hub-path.ts';
import { excerptText } from './excerpt-text.ts';

/** `thrown` itself where it is an answer already, or the disk's. */
export function explainHub(written: string, place: HubPath, thrown: unknown, { env }: HubAccess): unknown {
  if (!(thrown instanceof HubError)) return diskError(thrown) ?? thrown;
  const because = `The hub${thrown.status === 0 ? ' or the network' : ''} says: ${excerptText(thrown.message, 300)}`; // a line or two of a terminal
  const facts = { path: written, status: thrown.status };
  const token = env['HF_TOKEN'] ?? '';
  if (thrown.status === 401 || thrown.status === 403) {
    return new AerieError(
      'hub.refused',
      `${written} may not be read${token === '' ? ' without a token' : ' with this HF_TOKEN'}.`,
      {
        because: `${because}\n${whyRefused(thrown.status, token)}`,
        remedy: `${remedyFor(thrown.status, token)}\n${byHand(place, env)}`,
        facts,
      },
      thrown,
    );
  }
  if (thrown.status === 404) {
    return new AerieError(
      'source.missing',
      `${written} is not on the hub.`,
      {
        because,
        remedy: `Look at ${endpointOf(env)}/datasets/${place.name}/tree/${place.revision} for the names, and change from: in the run file.`,
        facts,
      },
      thrown,
    );
  }
  return new AerieError(
    'hub.unreachable',
    `${written} cannot be fetched.`,
    {
      because,
      remedy: `Run the same command again when the hub can be reached; nothing is lost, and files that are whole are not fetched again.\n${byHand(place, env)}`,
      facts,
    },
    thrown,
  );
}

export function noHubFile(written: string, others: readonly string[]): AerieError {
  const shown = others
    .slice(0, 5)
    .map((path) => excerptText(path, 80))
    .join(', '); // 5: enough to see how they are named
  return new AerieError('source.missing', `No file of the data set matches ${written}.`, {
    because:
      others.length === 0
        ? 'There is none with a suffix that is read in that folder.'
        : `There are ${formatCount(others.length)} that could be read: ${shown}.`,
    remedy: 'Change from: in the run file; * does not cross a folder, ** does.',
    facts: { path: written, found: others.length },
  });
}

function whyRefused(status: number, token: string): string {
  if (status === 403)
    return 'The data set is there, and this user has not been let in (its terms have to be accepted on its page).';
  if (token === '') return 'The hub answers so for a data set that is private, and for one that does not exist.';
  return token.startsWith('hf_')
    ? 'The token is wrong, has expired, or may not read this data set.'
    : 'The token was not sent: tokens of the hub begin with hf_.';
}

function remedyFor(status: number, token: string): string {
  if (status === 403)
    return 'Accept the terms on the page of the data set with the account of the token, then run the same command again.';
  return token === ''
    ? 'Check the name; for a private data set type  export HF_TOKEN=…  before the command.'
    : 'Type  export HF_TOKEN=…  with a token that may read it, then run the same command again.';
}

function byHand({ name, revision, path }: HubPath, env: HubAccess['env']): string {
  return `Or download it by hand (${endpointOf(env)}/datasets/${name}/resolve/${revision}/${path}) and write the path of the file under from:.`;
}

function endpointOf(env: HubAccess['env']): string {
  const written = (env['HF_ENDPOINT'] || 'https://huggingface.co').replace(/\/+$/, '');
  return URL.canParse(written) ? new URL(written).origin : 'https://huggingface.co'; // what an address may hold of names and keys is left out
}

/** The cache lies on a disk like any other. */
function diskError(thrown: unknown): AerieError | undefined {
  const code = diskCodeOf(systemCodeOf(thrown));
  if (code === undefined || thrown instanceof AerieError) return undefined;
  return new AerieError(
    code,
    `The cache of data sets cannot be written: ${systemCodeOf(thrown)}.`,
    {
      because: thrown instanceof Error ? thrown.message : String(thrown),
      remedy: 'Free some space, or type  export AERIE_CACHE=/another/folder  and run the same command again. Nothing was lost.',
    },
    thrown,
  );
}
