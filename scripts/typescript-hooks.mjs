/** Lets Node read the TypeScript of test/ as it stands: types are taken out file by file, so that nothing is written and every path stays. */
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

const compilerOptions = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023, inlineSourceMap: true };

export async function load(url, context, nextLoad) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return await nextLoad(url, context);
  const path = fileURLToPath(url);
  const { outputText } = ts.transpileModule(await readFile(path, 'utf8'), { compilerOptions, fileName: path });
  return { format: 'module', source: outputText, shortCircuit: true };
}
