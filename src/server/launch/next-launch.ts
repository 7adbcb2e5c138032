/**
 * Which flags the next launch has: as the person wrote them, with what recovery and rules have changed since, and, where the last launch
 * has ended, with what its end asks for. Decisions are in `../recovery/`; here they are told and written down.
 */
import { AerieError } from '../../base/errors.ts';
import type { PolicyRule } from '../../spec/run.ts';
import { applyChanges, describeChange, launchKey } from '../recovery/changes.ts';
import { decideRecovery } from '../recovery/decide-recovery.ts';
import { describeRecovery } from '../recovery/describe-recovery.ts';
import { type KeptChange, keepChanges, planFlags } from '../recovery/kept-changes.ts';
import type { Env, Flags, RecoveryLimits, RecoveryStep } from '../recovery/recovery.ts';
import { bookUnderRule, isNoted, noteRule } from './book-under-rule.ts';
import type { ServerBook } from './launch-book.ts';
import type { LauncherOptions } from './launcher-options.ts';

/** The next launch, and the book that it is entered in. */
export interface Next {
  readonly flags: Flags;
  readonly env: Env;
  readonly book: ServerBook;
}

export interface Wanted extends Next {
  /** What rules have changed of what the person wrote. */
  readonly byRule: readonly KeptChange[];
}

export function wantedOf({ given, env }: LauncherOptions, book: ServerBook): Wanted {
  const planned = planFlags({ given, env, kept: book.kept });
  const byRule = planned.applied.filter(({ by }) => by === 'policy');
  return { flags: planned.flags, env: planned.env, book, byRule };
}

/** What the last launch came to decides, unless the person has written something else since. Throws `server.gave-up`. */
export async function decideNext(options: LauncherOptions, book: ServerBook): Promise<Next> {
  const { engine } = options;
  const wanted = wantedOf(options, book);
  const last = book.tries.at(-1);
  if (last === undefined) return wanted;
  const isEdited = launchKey(engine, wanted.flags, wanted.env) !== launchKey(engine, last.flags, last.env);
  if (isEdited) return { ...wanted, book: { ...book, tries: [], isPending: false } };
  return book.isPending ? await recover(options, book) : wanted;
}

async function recover(options: LauncherOptions, book: ServerBook): Promise<Next> {
  const { engine, given, policy, basis, version, host, signal } = options;
  const limits = await measureLimits(options);
  const step = decideRecovery({
    ...{ engine, version: version(), tries: book.tries, policy: policy(), given, basis: basis(), limits },
  });
  const last = book.tries.at(-1);
  if (step.kind === 'give-up' || last === undefined) throw await gaveUp(options, step, book);
  tellStep(options, step, book);
  await host.clock.sleep(step.pauseMs, signal);
  if (step.kind === 'wait-for-memory') return { flags: last.flags, env: last.env, book };
  const kept = keepChanges({ engine, kept: book.kept, given, changes: step.changes, by: 'recovery' });
  return { ...applyChanges(last.flags, last.env, step.changes), book: { ...book, kept } };
}

/** Host memory is measured while the server is down. */
async function measureLimits({ limits, machine }: LauncherOptions): Promise<RecoveryLimits> {
  const { memoryAvailableBytes } = await machine.resources([]);
  return { ...limits(), ...(memoryAvailableBytes === undefined ? {} : { hostFreeGB: memoryAvailableBytes / 1e9 }) };
}

function tellStep({ name, emit }: LauncherOptions, step: Exclude<RecoveryStep, { kind: 'give-up' }>, book: ServerBook): void {
  const changes = step.kind === 'relaunch' ? step.changes.map(describeChange) : [];
  const predicted = step.kind === 'relaunch' ? step.predicted : undefined;
  const facts = {
    launch: book.launches + 1,
    because: step.because,
    changes: changes.join(', ') || 'the same flags',
    ...predicted,
  };
  emit({ kind: 'launch.changed', subject: name, facts });
}

/** Whoever gives the same command again wants it tried again. */
async function gaveUp({ name, emit, shelf }: LauncherOptions, step: RecoveryStep, book: ServerBook): Promise<AerieError> {
  const { tries } = book;
  const { because } = step;
  await shelf.write({ ...book, tries: [], isPending: false });
  emit({ kind: 'launch.given-up', subject: name, facts: { because, launches: tries.length } });
  const remedy = step.kind === 'give-up' ? step.remedy : '';
  return new AerieError(
    'server.gave-up',
    `${name} is given up after ${tries.length === 1 ? 'one launch' : `${tries.length} launches`}: ${because}.`,
    {
      evidence: describeRecovery(step, tries),
      remedy: `${remedy === '' ? '' : `${remedy}\n`}Then give the same command again: it resumes. What is committed is safe.`,
    },
  );
}

/**
 * A rule that came later: the lever that breaks it goes, and everything else stays. Returns why no flag can keep the rule,
 * '' where one can.
 */
export async function keepRule(options: LauncherOptions, rule: PolicyRule): Promise<string> {
  const { shelf, name, emit } = options;
  const before = await shelf.read();
  const { book, changed, cannot } = bookUnderRule(rule, before, wantedOf(options, before).flags, options);
  if (changed !== undefined) emit({ kind: 'launch.changed', subject: name, facts: changed });
  await shelf.write(book);
  return cannot;
}

/** At a start: a rule that is in the ledger already, and that a death may have kept from the book. */
export async function keepAddedRule(options: LauncherOptions, rule: PolicyRule): Promise<void> {
  const { shelf } = options;
  const book = await shelf.read();
  if (isNoted(rule, book)) return;
  // Nothing was launched before the rule came: what the file says is a person's, and is judged as it stands.
  if (book.launches === 0) await shelf.write(noteRule(rule, book));
  else await keepRule(options, rule);
}
