/** Loads a TypeScript file that imports nothing, by itself: for pages that are generated from tables. */
import { readFileSync } from 'node:fs';
import ts from 'typescript';

export async function importTypeScript(path) {
  const { outputText } = ts.transpileModule(readFileSync(path, 'utf8'), {
    compilerOptions: { module: 'esnext', target: 'es2022' },
  });
  return await import(`data:text/javascript;base64,${Buffer.from(outputText).toString('base64')}`);
}
