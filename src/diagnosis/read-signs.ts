/** Which rules and endings a line fits, and how closely. Pure but for counting how often each sign was read. */
import { peelLine } from '../engine/log-envelope.ts';
import type { Found, Sighting } from './account.ts';
import { brokenParts } from './join-wrapped.ts';
import { NEAR_LINES, phaseOfFrames } from './line-hints.ts';
import { phaseOrder } from './phases.ts';
import type { FoundLine } from './scan-lines.ts';
import { type CompiledSign, matchSign } from './sign.ts';
import type { FindingTrack } from './track-findings.ts';
import type { Phase } from './verdict.ts';
import type { CompiledRule, Watched } from './watch.ts';

/** Shown as evidence. */
const LONGEST_EVIDENCE = 500;
/** A sign that comes a thousand times is read no more: it has said what it says. */
const READ_OF_EACH = 1000;

/** A request that was logged with its prompt: whatever a person wrote there is no sign. */
const REQUEST = /Received request |Receive: obj=|Finish: obj=|Generated response |prompt: ['"]/;
/** Engines tell of their end at a higher level. */
const TOLD = /^(?:DEBUG|INFO)$/;
const HEAD = 400;

export class SignReader {
  readonly #seen: Map<Watched, number>;

  constructor(seen: ReadonlyMap<Watched, number> = new Map()) {
    this.#seen = new Map(seen);
  }

  copy(): SignReader {
    return new SignReader(this.#seen);
  }

  read(
    watched: readonly Watched[],
    found: FoundLine,
    sighting: Sighting,
    context: { phase: Phase | ''; findings: FindingTrack },
  ): void {
    if (REQUEST.test(sighting.text.slice(0, HEAD))) return;
    const candidates: Found[] = [];
    const joined: { text: string | undefined } = { text: undefined };
    for (const one of watched) {
      if ((one.kind !== 'sign' && one.kind !== 'death') || this.#isTired(one)) continue;
      const numbers = numbersIn(one.sign, found, sighting, joined);
      if (numbers === undefined) continue;
      if (one.kind === 'death') {
        if (!TOLD.test(peelLine(sighting.text.slice(0, HEAD)).level)) context.findings.die(evidence(sighting));
        continue;
      }
      const fit = fitOf(one.rule, found, sighting, context.phase);
      if (fit > 0) candidates.push(candidate(one.rule, sighting, { numbers, fit, phase: context.phase || phaseOfFrames(found) }));
    }
    if (candidates.length > 0) context.findings.take(withAllNumbers(candidates));
  }

  #isTired(one: Watched): boolean {
    const count = (this.#seen.get(one) ?? 0) + 1;
    this.#seen.set(one, count);
    return count > READ_OF_EACH;
  }
}

/** In the line, else in the record that a terminal broke; what makes it another sign may stand on the other side of the break. */
function numbersIn(
  sign: CompiledSign,
  found: FoundLine,
  { text }: Sighting,
  joined: { text: string | undefined },
): Found['numbers'] | undefined {
  const numbers = matchSign(sign, text);
  if (numbers !== undefined && sign.not === undefined) return numbers;
  joined.text ??= brokenParts(found, text).join('');
  return matchSign(sign, joined.text);
}

function candidate({ rule, place }: CompiledRule, sighting: Sighting, more: Pick<Found, 'numbers' | 'fit' | 'phase'>): Found {
  const { who } = peelLine(sighting.text.slice(0, 300));
  return { ...evidence(sighting), ...more, rule, place, who };
}

/** What speaks against a sign stands beside it; what says where it happened may be a whole traceback above it. */
const BESIDE_LINES = 12;

/** 0: the rule does not count here. */
function fitOf(
  { rule, near, unless, unlessNear }: CompiledRule,
  found: FoundLine,
  { text }: Sighting,
  phase: Phase | '',
): number {
  if (unless?.test(brokenParts(found, text).join('')) === true) return 0;
  if (unlessNear?.test(around(found, text, BESIDE_LINES)) === true) return 0;
  if (rule.where === undefined) return 1;
  if (near?.test(around(found, text, NEAR_LINES)) === true) return 3;
  return phase !== '' && rule.where.phases?.some((one) => phaseOrder(one) === phaseOrder(phase)) === true ? 2 : 0;
}

function around(found: FoundLine, text: string, above: number): string {
  return [...found.before(above).reverse(), text, ...found.after()].join('\n');
}

/** One rule may know a line by several signs, of which only one reads its numbers. */
function withAllNumbers(candidates: readonly Found[]): Found[] {
  const rules = new Map<number, Found>();
  for (const found of candidates) {
    const known = rules.get(found.place);
    rules.set(found.place, known === undefined ? found : { ...known, numbers: { ...known.numbers, ...found.numbers } });
  }
  return [...rules.values()];
}

function evidence(sighting: Sighting): Sighting {
  return { ...sighting, text: sighting.text.slice(0, LONGEST_EVIDENCE) };
}
