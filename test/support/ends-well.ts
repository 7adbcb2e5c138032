/** How every command must end, whatever it was given: an answer or an error of the table, never a bug and never a stack. */
import { expect } from 'vitest';
import { ERRORS, type ErrorCode, EXIT_CODE, type Fault } from '../../src/base/errors.ts';
import type { CliResult } from './cli.ts';

const NEVER = new Set<number | null>([EXIT_CODE.bug, null]);

/** Returns the error's code, or '' where the command answered. */
export function expectEndsWell(result: CliResult, what: string): ErrorCode | '' {
  const said = `${what}\nexit ${result.code} ${result.signal ?? ''}\n${result.stdout}\n${result.stderr}`.slice(0, 6000);
  expect.soft(NEVER.has(result.code), said).toBe(false);
  expect
    .soft(`${result.stdout}\n${result.stderr}`, said)
    .not.toMatch(/^\s+at .*[(:]\d+:\d+\)?$|\bnode:internal\b|UnhandledPromise/m);
  expect.soft(result.stderr, said).not.toMatch(/\[object |\bundefined\b/);
  if (result.code === 0 || result.code === 1) return '';
  const code = /^error {4}(\S+)$/m.exec(result.stderr)?.[1] ?? '';
  const known: Readonly<Record<string, { readonly fault: Fault }>> = ERRORS;
  const fault = Object.hasOwn(known, code) ? known[code]?.fault : undefined;
  expect.soft(fault === undefined ? 'no code of the table' : EXIT_CODE[fault], said).toBe(result.code);
  expect.soft(result.stderr, said).toMatch(/^try {6}\S/m);
  return code as ErrorCode;
}
