/** One line of `aerie doctor`: what was looked at, the verdict with its numbers, and what to type. */
export interface DoctorCheck {
  readonly name: string;
  readonly verdict: 'ok' | 'warning' | 'fails';
  /** What was measured or found, one sentence without its stop. */
  readonly says: string;
  /** What to type or change; '' where nothing is to be done. */
  readonly next: string;
  readonly facts: Readonly<Record<string, string | number | boolean>>;
}

type Facts = DoctorCheck['facts'];

export function ok(name: string, says: string, facts: Facts = {}): DoctorCheck {
  return { name, verdict: 'ok', says, next: '', facts };
}

export function warning(name: string, says: string, next: string, facts: Facts = {}): DoctorCheck {
  return { name, verdict: 'warning', says, next, facts };
}

export function fails(name: string, says: string, next: string, facts: Facts = {}): DoctorCheck {
  return { name, verdict: 'fails', says, next, facts };
}
