/** The same log as it would look elsewhere: another model, machine, carrier or terminal. Each keeps what the log means. */

/** A name for a model, of the same kind. */
const MODEL = /\b(?:[\w.-]+\/)?(?:Qwen|QwQ|DeepSeek|Llama|Meta-Llama|MiniMax|GLM|glm|Kimi|DSV4)[\w.-]*/gi;

export const MUTATIONS: Readonly<Record<string, (text: string) => string>> = {
  'with another model': (text) =>
    text.replace(MODEL, (name) => (name.includes('/') ? 'someone/Other-Model-9B' : 'other-model-9b')),
  'with other process ids and addresses': (text) =>
    text
      .replace(/pid=\d+/g, 'pid=77')
      .replace(/10\.0\.0\.1\d/g, '192.168.7.9')
      .replace(/:\d{5} - /g, ':40001 - '),
  'with other paths': (text) =>
    text
      .replaceAll('/usr/local/lib/python3.12/dist-packages', '/opt/env/lib/python3.11/site-packages')
      .replaceAll('/home/user', '/srv/someone'),
  'with source lines of another version': (text) =>
    text.replace(/\.py:\d+\]/g, '.py:7777]').replace(/", line \d+, in/g, '", line 4242, in'),
  'on another day': (text) =>
    text
      .replace(/\b(\d{4})-\d\d-\d\d(?=[ T]\d\d:)/g, '$1-05-05')
      .replace(/\b(INFO|WARNING|ERROR|DEBUG|CRITICAL) \d\d-\d\d /g, '$1 05-05 '),
  'with ranks renumbered': (text) => text.replace(/\bTP(\d)\b/g, (_, rank: string) => `TP${7 - Number(rank)}`),
  'carried by docker compose': (text) => eachLine(text, (line) => `engine-1  | ${line}`),
  'carried by kubectl with times': (text) => eachLine(text, (line) => `2026-03-04T05:06:07.123456789Z ${line}`),
  'carried by kubectl with names': (text) => eachLine(text, (line) => `[pod/engine-0/server] ${line}`),
  'carried by journald': (text) => eachLine(text, (line) => `Mar 04 05:06:07 gpu-host serve[412]: ${line}`),
  'carried by srun': (text) => eachLine(text, (line) => `0: ${line}`),
  'in colour': (text) => eachLine(text, (line) => `\u001b[36m${line}\u001b[0m`),
  'with coloured levels': (text) => text.replace(/\b(INFO|WARNING|ERROR|CRITICAL)\b/g, '\u001b[32m$1\u001b[0m'),
  'with matches coloured as grep does': (text) =>
    text.replace(/error|memory|timeout/gi, (word) => `\u001b[01;31m\u001b[K${word}\u001b[m\u001b[K`),
  'with line ends of Windows': (text) => text.replaceAll('\n', '\r\n'),
  'wrapped at 100 columns': (text) => eachLine(text, (line) => wrap(line, 100)),
  'wrapped at 80 columns': (text) => eachLine(text, (line) => wrap(line, 80)),
  'wrapped at words': (text) => eachLine(text, (line) => wrapAtWords(line, 100)),
  'after ten thousand lines of access log': (text) =>
    `${'INFO:     127.0.0.1:40001 - "GET /metrics HTTP/1.1" 200 OK\n'.repeat(10_000)}${text}`,
  'without a last line feed': (text) => text.trimEnd(),
};

function eachLine(text: string, change: (line: string) => string): string {
  const lines = text.split('\n');
  const last = lines.pop() ?? '';
  return [...lines.map(change), last].join('\n');
}

function wrap(line: string, columns: number): string {
  return line.match(new RegExp(`.{1,${columns}}`, 'gu'))?.join('\n') ?? line;
}

function wrapAtWords(line: string, columns: number): string {
  return line.replace(new RegExp(`(?=.{${columns}})(.{1,${columns}}) `, 'gu'), '$1\n');
}
