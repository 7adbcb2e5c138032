import { describe, expect, it } from 'vitest';
import { healthOf } from './ask-health.ts';

describe('healthOf', () => {
  it('takes a closed port for a refusal that needs no reason', () => {
    const closed = { kind: 'transport', code: 'ECONNREFUSED', text: 'connect ECONNREFUSED 127.0.0.1:30000' } as const;
    expect(healthOf(closed, 4)).toEqual({ health: { kind: 'refused', afterMs: 4 }, because: '' });
  });

  it('says what else a connection met', () => {
    const reset = { kind: 'transport', code: 'ECONNRESET', text: 'read ECONNRESET' } as const;
    expect(healthOf(reset, 4)).toEqual({ health: { kind: 'refused', afterMs: 4 }, because: 'ECONNRESET: read ECONNRESET' });
  });

  it('calls packets that are lost on the way no refusal', () => {
    const lost = { kind: 'transport', code: 'UND_ERR_CONNECT_TIMEOUT', text: 'Connect Timeout Error' } as const;
    expect(healthOf(lost, 10_000).health).toEqual({ kind: 'timeout', afterMs: 10_000 });
  });

  it('calls an answer that was not waited for no refusal', () => {
    expect(healthOf({ kind: 'aborted' }, 25_000).health).toEqual({ kind: 'timeout', afterMs: 25_000 });
  });
});
