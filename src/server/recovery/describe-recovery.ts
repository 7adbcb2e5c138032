/** The report of a recovery: every launch, how it ended, the line that shows it, what was changed, and what was not done. Pure. */
import { describeChange, isSameFlag } from './changes.ts';
import type { Flags, LaunchChange, LaunchTry, RecoveryStep } from './recovery.ts';

/** Lines for people. */
export function describeRecovery(step: RecoveryStep, tries: readonly LaunchTry[]): string[] {
  const lines = tries.flatMap((one, at) => describeTry(one, tries[at - 1], at + 1));
  return [...lines, ...describeStep(step)];
}

function describeTry(one: LaunchTry, before: LaunchTry | undefined, number: number): string[] {
  const { verdict, wasReady, answered } = one;
  const changes = before === undefined ? [] : changesBetween(before, one);
  const how =
    before === undefined ? 'as given' : changes.length === 0 ? 'the same flags' : changes.map(describeChange).join(', ');
  const lived = wasReady ? `ready, ${answered} answers` : 'never ready';
  const [evidence] = verdict.evidence;
  return [
    `launch ${number} (${how}): ${verdict.state}, ${lived}: ${verdict.title} [${verdict.cause}]`,
    ...(evidence === undefined ? [] : [`  ${evidence.file ?? 'log'}:${evidence.line}  ${evidence.text.trim().slice(0, 200)}`]),
  ];
}

/** What one launch had otherwise than the one before it. */
export function changesBetween(before: LaunchTry, after: LaunchTry): LaunchChange[] {
  const names = [...Object.keys(before.flags), ...Object.keys(after.flags)];
  const once = names.filter((name, at) => names.findIndex((other) => isSameFlag(other, name)) === at);
  const flags = once.flatMap((name): LaunchChange[] => {
    const [from, to] = [valueIn(before.flags, name), valueIn(after.flags, name)];
    return JSON.stringify(from) === JSON.stringify(to) ? [] : [{ what: 'flag', name, from, to, because: '' }];
  });
  const variables = [...new Set([...Object.keys(before.env), ...Object.keys(after.env)])];
  const env = variables.flatMap((name): LaunchChange[] => {
    const [from, to] = [before.env[name], after.env[name]];
    return from === to ? [] : [{ what: 'env', name, from, to, because: '' }];
  });
  return [...flags, ...env];
}

function valueIn(flags: Flags, name: string): Flags[string] | undefined {
  const written = Object.keys(flags).findLast((one) => isSameFlag(one, name));
  return written === undefined ? undefined : flags[written];
}

function describeStep(step: RecoveryStep): string[] {
  switch (step.kind) {
    case 'relaunch': {
      const what = step.changes.length === 0 ? 'the same flags again' : step.changes.map(describeChange).join(', ');
      return [`next: ${what}`, ...step.changes.map((change) => `  ${change.name}: ${change.because}`), `  ${step.because}`];
    }
    case 'wait-for-memory':
      return [`next: the same flags, once the memory is free: ${step.because}`, `  ${step.remedy}`];
    case 'give-up':
      // Why, and what to do, are the message and the remedy of the error around it.
      return step.passedOver.map((one) => `not done: ${one}`);
  }
}
