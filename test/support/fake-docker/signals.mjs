/** Signals as the first process of a container hears them. */
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { refusal } from './run-options.mjs';

/** The first process of a pid namespace hears only what it has a handler for, and SIGKILL; under --init the init passes it on. */
export function signalFirst({ started, hasInit }, signal) {
  const number = constants.signals[signal];
  const caught = BigInt(`0x${/^SigCgt:\s*([0-9a-f]+)/m.exec(readStatus(started.pid))?.[1] ?? '0'}`);
  if (signal !== 'SIGKILL' && !hasInit && ((caught >> BigInt(number - 1)) & 1n) === 0n) return;
  try {
    process.kill(started.pid, signal);
  } catch {
    // it has ended meanwhile
  }
}

function readStatus(pid) {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return '';
  }
}

export function signalNamed(text) {
  const name = /^\d+$/.test(text)
    ? Object.entries(constants.signals).find(([, number]) => number === Number(text))?.[0]
    : `SIG${text.toUpperCase().replace(/^SIG/, '')}`;
  if (name === undefined || !(name in constants.signals)) throw refusal(`Error response from daemon: invalid signal: ${text}`, 1);
  return name;
}
