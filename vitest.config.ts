import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    setupFiles: ['test/support/property-runs.ts'],
    testTimeout: 120_000, // journeys start real engines on two shared cores
    hookTimeout: 120_000,
    pool: 'forks',
    maxWorkers: 2,
  },
});
