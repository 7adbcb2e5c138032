import { describe, expect, it } from 'vitest';
import { applyChanges, describeChange, isSameFlag } from './changes.ts';
import { hashFlags, keepChanges, NOTHING_KEPT, planFlags } from './kept-changes.ts';
import type { Flags, LaunchChange } from './recovery.ts';

const GIVEN: Flags = { tp: 8, 'mem-fraction-static': 0.93, 'kv-cache-dtype': 'fp8_e4m3' };
const CAP: LaunchChange = { what: 'flag', name: 'max-running-requests', from: undefined, to: 256, because: '1.75 GiB' };
const LOWER: LaunchChange = { what: 'flag', name: 'mem-fraction-static', from: 0.93, to: 0.91, because: '1.88 GiB' };
const P2P: LaunchChange = { what: 'env', name: 'NCCL_P2P_DISABLE', from: undefined, to: '1', because: 'it hung' };
const SIXTEEN: LaunchChange = { what: 'flag', name: 'kv-cache-dtype', from: 'fp8_e4m3', to: 'bf16', because: 'the rule' };

const recovered = keepChanges({ engine: 'sglang', kept: NOTHING_KEPT, changes: [CAP, LOWER, P2P], by: 'recovery', given: GIVEN });
const kept = keepChanges({ engine: 'sglang', kept: recovered, changes: [SIXTEEN], by: 'policy', given: GIVEN });
const plan = (given: Flags, env = {}) => planFlags({ given, env, kept });

describe('what worked is laid over what the person writes', () => {
  it('all of it, while nothing is edited', () => {
    const { flags, env, applied, dropped } = plan(GIVEN);
    expect(flags).toEqual({ tp: 8, 'mem-fraction-static': 0.91, 'kv-cache-dtype': 'bf16', 'max-running-requests': 256 });
    expect(env).toEqual({ NCCL_P2P_DISABLE: '1' });
    expect(applied.map(({ by }) => by)).toEqual(['recovery', 'recovery', 'recovery', 'policy']);
    expect(dropped).toEqual([]);
  });

  it('an edited flag is the person’s again; what was found for others stays', () => {
    const { flags, dropped } = plan({ ...GIVEN, 'mem-fraction-static': 0.88 });
    expect(flags).toMatchObject({ 'mem-fraction-static': 0.88, 'max-running-requests': 256, 'kv-cache-dtype': 'bf16' });
    expect(dropped).toHaveLength(1);
    expect(dropped[0]?.because).toContain('the run file says 0.88 for mem-fraction-static now, and said 0.93');
  });

  it('a flag that is written now for the first time is an edit, a variable too', () => {
    const { flags, env, dropped } = plan({ ...GIVEN, 'max-running-requests': 512 }, { NCCL_P2P_DISABLE: '0' });
    expect(flags['max-running-requests']).toBe(512);
    expect(env).toEqual({ NCCL_P2P_DISABLE: '0' });
    expect(dropped.map(({ change }) => change.name)).toEqual(['max-running-requests', 'NCCL_P2P_DISABLE']);
  });

  it('another spelling of the same value is no edit, and is kept', () => {
    const { flags, dropped } = plan({ 'tp-size': 8, 'mem-fraction': 0.93, 'kv-cache-dtype': 'fp8_e4m3' });
    expect(dropped).toEqual([]);
    expect(flags).toEqual({ 'tp-size': 8, 'mem-fraction': 0.91, 'kv-cache-dtype': 'bf16', 'max-running-requests': 256 });
  });

  it('what a rule put there stays when the line is taken away, since auto may be FP8', () => {
    const { 'kv-cache-dtype': _, ...without } = GIVEN;
    expect(plan(without).flags['kv-cache-dtype']).toBe('bf16');
  });

  it('an edit that proposes what the rule forbids is not overridden in silence', () => {
    const { flags, dropped } = plan({ ...GIVEN, 'kv-cache-dtype': 'fp8_e5m2' });
    expect(flags['kv-cache-dtype']).toBe('fp8_e5m2');
    expect(dropped[0]?.change.by).toBe('policy');
  });
});

describe('keeping', () => {
  it('the newest change of a flag replaces the older, and one that leads back to what is written is kept no longer', () => {
    const lower = { ...LOWER, from: 0.91, to: 0.89 };
    const again = keepChanges({ engine: 'sglang', kept, changes: [lower], by: 'recovery', given: GIVEN });
    expect(planFlags({ given: GIVEN, env: {}, kept: again }).flags['mem-fraction-static']).toBe(0.89);
    expect(again.changes.filter(({ name }) => name === 'mem-fraction-static')).toHaveLength(1);
    const back = keepChanges({
      ...{ engine: 'sglang', kept: again, by: 'recovery', given: GIVEN },
      changes: [{ ...LOWER, from: 0.89, to: 0.93 }],
    });
    expect(back.changes.map(({ name }) => name)).not.toContain('mem-fraction-static');
  });

  it('survives being written and read', () => {
    const read = JSON.parse(JSON.stringify(kept)) as typeof kept;
    expect(planFlags({ given: GIVEN, env: {}, kept: read }).flags).toEqual(plan(GIVEN).flags);
  });

  it('the hash of flags passes over order and spelling', () => {
    expect(hashFlags('sglang', { tp: 8, 'mem-frac': 0.9 })).toBe(
      hashFlags('sglang', { 'mem-fraction-static': 0.9, 'tp-size': 8 }),
    );
    expect(hashFlags('sglang', { tp: 8 })).not.toBe(hashFlags('sglang', { tp: 4 }));
  });
});

describe('changes', () => {
  it('a flag keeps the spelling and the place that it has', () => {
    const lower: LaunchChange = { what: 'flag', name: 'gpu-memory-utilization', from: 0.9, to: 0.85, because: '' };
    expect(Object.entries(applyChanges({ gpu_memory_utilization: 0.9, tp: 2 }, {}, [lower]).flags)).toEqual([
      ['gpu_memory_utilization', 0.85],
      ['tp', 2],
    ]);
    expect(
      applyChanges({ q: 'fp8' }, {}, [{ what: 'flag', name: 'quantization', from: 'fp8', to: undefined, because: '' }]),
    ).toEqual({
      flags: {},
      env: {},
    });
  });

  it('two spellings of one flag become one', () => {
    const cap: LaunchChange = { what: 'flag', name: 'tp-size', from: 4, to: 8, because: '' };
    expect(applyChanges({ tp: 2, 'tensor-parallel-size': 4 }, {}, [cap]).flags).toEqual({ 'tensor-parallel-size': 8 });
    expect(isSameFlag('cuda-graph-max-bs', 'cuda-graph-max-bs-decode')).toBe(true);
    expect(isSameFlag('tp', 'dp')).toBe(false);
  });

  it('are named for people, and what a variable held before is not told', () => {
    expect(describeChange(LOWER)).toBe('mem-fraction-static 0.93 → 0.91');
    expect(describeChange(CAP)).toBe('max-running-requests default → 256');
    expect(describeChange({ ...CAP, name: 'enforce-eager', to: true })).toBe('enforce-eager default → on');
    expect(describeChange({ ...P2P, from: 'hf_secret' })).not.toContain('hf_secret');
  });
});
