/** Lines that rules or endings know, and whether the server lived on after them. Pure; keeps the first ones of each rule. */
import type { Found, Sighting } from './account.ts';

/** Of each rule: the first are the cause, the rest repeat it. */
const KEPT_OF_EACH = 20;
/** A request that was answered while the engine died is no sign of life. */
const DYING_MS = 30_000;
const DYING_ANSWERS = 3;

export class FindingTrack {
  readonly found: Found[] = [];
  readonly deaths: Sighting[] = [];
  readonly #counts = new Map<string, number>();
  #lifeCount = 0;
  #lastLife: Sighting | undefined;
  #readyAfter = false;

  copy(): FindingTrack {
    const copy = new FindingTrack();
    copy.found.push(...this.found);
    copy.deaths.push(...this.deaths);
    for (const [code, count] of this.#counts) copy.#counts.set(code, count);
    copy.#lifeCount = this.#lifeCount;
    copy.#lastLife = this.#lastLife;
    copy.#readyAfter = this.#readyAfter;
    return copy;
  }

  /** Of several rules that fit one line the best counts: the closest fit, then the earlier in the table. Wrappers stand beside it. */
  take(candidates: readonly Found[]): void {
    const best = [...candidates].sort((a, b) => b.fit - a.fit || a.place - b.place)[0];
    for (const found of candidates) {
      if (found !== best && found.rule.weight !== 'wrapper') continue;
      const count = (this.#counts.get(found.rule.code) ?? 0) + 1;
      this.#counts.set(found.rule.code, count);
      if (count <= KEPT_OF_EACH) this.found.push(found);
      if (found.rule.state === 'crashed' && found.rule.onlyIfDead !== true) this.#dies();
    }
  }

  die(sighting: Sighting): void {
    // One line may be known by two texts.
    if (this.deaths.length < KEPT_OF_EACH && this.deaths.at(-1)?.line !== sighting.line) this.deaths.push(sighting);
    this.#dies();
  }

  live(sighting: Sighting, isReady = false): void {
    this.#lifeCount += 1;
    this.#lastLife = sighting;
    this.#readyAfter ||= isReady;
  }

  lifeAfter(): { count: number; last: Sighting | undefined; isReady: boolean } {
    return { count: this.#lifeCount, last: this.#lastLife, isReady: this.#readyAfter };
  }

  #dies(): void {
    this.#lifeCount = 0;
    this.#lastLife = undefined;
    this.#readyAfter = false;
  }
}

/** Whether the server went on after its last death: what looked fatal was not. */
export function livedOn(life: ReturnType<FindingTrack['lifeAfter']>, diedAt: number | undefined): boolean {
  if (life.isReady) return true;
  if (life.count <= DYING_ANSWERS) return false;
  return diedAt === undefined || life.last?.at === undefined || life.last.at - diedAt > DYING_MS;
}
