/**
 * The conversation on stderr. On a terminal: sentences, and below them at most eight live lines, redrawn twice a second.
 * Elsewhere (a pipe, CI): one line per change and a summary every 30 s. Both are rendered from the same facts.
 */
import type { createLogUpdate } from 'log-update';
import type { Progress } from '../app/progress.ts';
import type { Event } from '../base/events.ts';
import { renderEvent } from './render/event.ts';
import { printable } from './render/printable.ts';
import { renderProgressLine, renderProgressLines } from './render/progress.ts';

const REDRAW_MS = 500;
const SUMMARY_MS = 30_000;

export interface Terminal {
  say(text: string): void;
  event(event: Event): void;
  watch(snapshot: () => Progress): void;
  close(): void;
}

export function openTerminal(node: NodeJS.Process, quiet: boolean): Terminal {
  if (quiet) return { say: () => undefined, event: () => undefined, watch: () => undefined, close: () => undefined };
  // A terminal that does not know its size says 0 columns (docker exec -t): nothing can be drawn there, but lines can be written.
  const isLive = node.stderr.isTTY === true && node.stderr.columns > 0 && !node.env['CI'];
  return isLive ? liveTerminal(node) : plainTerminal(node);
}

function plainTerminal(node: NodeJS.Process): Terminal {
  let timer: NodeJS.Timeout | undefined;
  const say = (text: string) => void node.stderr.write(`${printable(text)}\n`);
  return {
    say,
    event(event) {
      const line = renderEvent(event);
      if (line !== undefined) say(line);
    },
    watch(snapshot) {
      timer = setInterval(() => say(renderProgressLine(snapshot())), SUMMARY_MS);
      timer.unref();
    },
    close: () => clearInterval(timer),
  };
}

function liveTerminal(node: NodeJS.Process): Terminal {
  // Loaded where there is a terminal. Until it is there, lines are written and none is redrawn.
  let live: ReturnType<typeof createLogUpdate> | undefined;
  void import('log-update').then((loaded) => (live = loaded.createLogUpdate(node.stderr, { showCursor: true })));
  let timer: NodeJS.Timeout | undefined;
  let latest: (() => Progress) | undefined;
  const draw = () => {
    if (latest !== undefined) live?.(renderProgressLines(latest(), node.stderr.columns).join('\n'));
  };
  const say = (text: string) => {
    live?.clear();
    node.stderr.write(`${printable(text)}\n`);
    draw();
  };
  return {
    say,
    event(event) {
      const line = renderEvent(event);
      if (line !== undefined) say(line);
    },
    watch(snapshot) {
      latest = snapshot;
      timer = setInterval(draw, REDRAW_MS);
      timer.unref();
    },
    close() {
      clearInterval(timer);
      latest = undefined;
      live?.clear();
    },
  };
}
