/**
 * Loaded before a driver's own program (`node --import`): at its end, its CPU, its peak memory and how late its event loop was
 * go to the file named by BENCH_MEASURES. The same for every driver, Aerie's real command line among them.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

/** Milliseconds between two looks; the histogram counts them in. */
const EVERY_MS = 10;
const delay = monitorEventLoopDelay({ resolution: EVERY_MS });
delay.enable();
const before = process.cpuUsage();

process.on('exit', () => {
  const { user, system } = process.cpuUsage(before);
  const peakKib = Number(/VmHWM:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? Number.NaN);
  const lagP99Ms = Math.max(0, delay.percentile(99) / 1e6 - EVERY_MS);
  writeFileSync(
    process.env['BENCH_MEASURES'],
    JSON.stringify({ cpuUs: user + system, userUs: user, systemUs: system, peakMib: peakKib / 1024, lagP99Ms }),
  );
});
