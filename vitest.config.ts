import { defineConfig } from 'vitest/config';

/** Tests of src start the thread that was built: Node cannot read it as TypeScript. */
const builtThread = {
  name: 'built-thread',
  transform: (code: string, id: string) =>
    id.endsWith('/src/dataset/parquet-rows.ts')
      ? code.replace(/new URL\(["']\.\/parquet-worker\.js["'], import\.meta\.url\)/, () => `new URL(${JSON.stringify(THREAD)})`)
      : undefined,
};
const THREAD = new URL('dist/dataset/parquet-worker.js', import.meta.url).href;

export default defineConfig({
  plugins: [builtThread],
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    setupFiles: ['test/support/property-runs.ts'],
    testTimeout: 120_000, // journeys start real engines on two shared cores
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 3, // journeys wait for real processes more than they compute: on two cores a third of the time was idle
  },
});
