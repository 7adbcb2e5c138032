/**
 * The state of the fake docker: a folder for each container, `containers/ID/`, with `asked.json` (what `docker run` was told),
 * `started.json` (pid and when), `ended.json` (exit code and when), `ID-json.log` (its output as docker's json-file driver writes it).
 * `out-of-memory.json`: a test let the kernel kill it for memory. Each file is written once and whole, so that whoever dies leaves nothing half.
 */
import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { refusal } from './run-options.mjs';

export function openState(folder) {
  const root = join(folder, 'containers');
  mkdirSync(root, { recursive: true });
  const pathOf = (id, name) => join(root, id, name);
  const read = (id, name) => {
    try {
      return JSON.parse(readFileSync(pathOf(id, name), 'utf8'));
    } catch {
      return undefined; // not yet, or removed meanwhile
    }
  };
  const containerOf = (id) => {
    const asked = read(id, 'asked.json');
    const isOutOfMemory = read(id, 'out-of-memory.json') !== undefined;
    return (
      asked && {
        id,
        ...asked,
        started: read(id, 'started.json'),
        ended: read(id, 'ended.json'),
        logPath: logPathOf(id),
        isOutOfMemory,
      }
    );
  };
  const exitPathOf = (id) => join(folder, `exit-${id}.json`);
  const logPathOf = (id) => pathOf(id, `${id}-json.log`);
  const all = () =>
    readdirSync(root)
      .map(containerOf)
      .filter((container) => container !== undefined)
      .sort((a, b) => b.created.localeCompare(a.created)); // the newest first, as `docker ps` does
  return {
    folder,
    all,
    containerOf,
    logPathOf,
    write(id, name, value) {
      const path = pathOf(id, name);
      mkdirSync(join(root, id), { recursive: true });
      writeFileSync(`${path}.new`, JSON.stringify(value, undefined, 2));
      renameSync(`${path}.new`, path);
    },
    /** Outlives `--rm`: the client still has to tell it. */
    noteExit(id, exit) {
      writeFileSync(`${exitPathOf(id)}.new`, JSON.stringify(exit));
      renameSync(`${exitPathOf(id)}.new`, exitPathOf(id));
    },
    exitOf: (id) => (existsSync(exitPathOf(id)) ? JSON.parse(readFileSync(exitPathOf(id), 'utf8')) : undefined),
    remove: (id) => rmSync(join(root, id), { recursive: true, force: true }),
    /** By name, by id, or by an id's beginning that is no other's. */
    find(word, say = 'No such container') {
      const containers = all();
      const named = containers.find(({ id, name }) => id === word || name === word || `/${name}` === word);
      const begun = containers.filter(({ id }) => word !== '' && id.startsWith(word));
      const found = named ?? (begun.length === 1 ? begun[0] : undefined);
      if (found === undefined) throw refusal(`Error response from daemon: ${say}: ${word}`, 1);
      return found;
    },
    /** Tests put `down` or `denied` there. */
    daemon() {
      const path = join(folder, 'daemon');
      return existsSync(path) ? readFileSync(path, 'utf8').trim() : 'up';
    },
    images: () => JSON.parse(readFileSync(join(folder, 'images.json'), 'utf8')),
    /** Images that are not here and can be fetched. */
    registry: () => {
      const path = join(folder, 'registry.json');
      return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : {};
    },
    addImage(name, image) {
      const images = { ...this.images(), [name]: image };
      writeFileSync(join(folder, 'images.json'), JSON.stringify(images, undefined, 2));
    },
    /** Every call, for tests that count them or look for secrets on command lines. */
    noteCall: (words) => appendFileSync(join(folder, 'calls.jsonl'), `${JSON.stringify(words)}\n`),
  };
}

export const isRunning = ({ started, ended }) => started !== undefined && ended === undefined;
export const statusOf = (container) =>
  isRunning(container) ? 'running' : container.started === undefined && container.ended === undefined ? 'created' : 'exited';
