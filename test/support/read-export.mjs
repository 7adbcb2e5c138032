/**
 * Reads an export as a careful trainer would, and says what is wrong with it. Written from the trainers' formats alone: it
 * imports nothing of Aerie, so a mistake that Aerie makes both in writing and in checking does not pass here.
 *
 *   node test/support/read-export.mjs FOLDER [--vocabulary N] [--max-length N]     exit 0 = nothing found, 1 = findings
 *
 * Checked: only data files in the folder; UTF-8, one JSON object a line, a newline at the end of each; the same keys and
 * types in every row of a shape, over all files; ids unique over all files of a shape.
 * Token rows: whole-number ids in [0, vocabulary), equal lengths ≥ 2, masks of 0 and 1 with a 1 left after the cut at the
 * maximum length, a one-answer row is 0…0 1…1. Conversation rows: see `checkConversation`.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';

const NAME = /^.+\.(tokens|conversations)-\d{5}\.jsonl$/;

/**
 * @param {string} folder
 * @param {{vocabularySize?: number, maxLength?: number}} [limits]
 */
export function readExport(folder, limits = {}) {
  const seen = { findings: [], tokenRows: [], conversationRows: [], files: [] };
  const shapes = { tokens: newShape(), conversations: newShape() };
  for (const path of filesBelow(folder)) {
    const file = relative(folder, path);
    const kind = NAME.exec(basename(path))?.[1];
    if (kind === undefined) {
      seen.findings.push({ file, line: 0, code: 'stray-file' });
      continue;
    }
    seen.files.push(file);
    const note = (line, code) => seen.findings.push({ file, line, code });
    const rows = readLines(path, note);
    let reasoningOfFile;
    for (const { row, line } of rows) {
      checkShape(row, shapes[kind], kind, (code) => note(line, code));
      if (kind === 'tokens') {
        seen.tokenRows.push(row);
        checkTokens(row, limits, (code) => note(line, code));
      } else {
        seen.conversationRows.push(row);
        const reasons = checkConversation(row, (code) => note(line, code));
        if (reasoningOfFile !== undefined && reasons !== undefined && reasons !== reasoningOfFile) note(line, 'reasoning-varies');
        reasoningOfFile ??= reasons;
      }
    }
  }
  const folders = new Map();
  for (const file of seen.files) {
    const parent = join(file, '..');
    folders.set(parent, (folders.get(parent) ?? new Set()).add(NAME.exec(basename(file))?.[1]));
  }
  for (const [parent, kinds] of folders) if (kinds.size > 1) seen.findings.push({ file: parent, line: 0, code: 'mixed-folder' });
  return seen;
}

function filesBelow(folder) {
  return readdirSync(folder, { withFileTypes: true })
    .flatMap((entry) => (entry.isDirectory() ? filesBelow(join(folder, entry.name)) : [join(folder, entry.name)]))
    .sort();
}

function readLines(path, note) {
  const bytes = readFileSync(path);
  const rows = [];
  let line = 0;
  for (let start = 0; start < bytes.length; ) {
    line += 1;
    let end = bytes.indexOf(0x0a, start);
    if (end < 0) {
      note(line, 'no-last-newline');
      end = bytes.length;
    }
    try {
      const row = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(start, end)));
      if (typeof row === 'object' && row !== null && !Array.isArray(row)) rows.push({ row, line });
      else note(line, 'not-an-object');
    } catch {
      note(line, 'not-json');
    }
    start = end + 1;
  }
  if (line === 0) note(0, 'empty-file');
  return rows;
}

function newShape() {
  return { form: undefined, ids: new Set() };
}

function checkShape(row, shape, kind, note) {
  if (typeof row.id !== 'string' || row.id.trim() === '') note('id-not-text');
  if (shape.ids.has(row.id)) note('duplicate-id');
  shape.ids.add(row.id);
  // What is in the lists of a conversation is checked there; here a list counts as a list.
  const form = JSON.stringify(formOf(row));
  shape.form ??= form;
  if (form !== shape.form) note('shape-varies');
  const allowed =
    kind === 'tokens' ? ['id', 'primary_id', 'input_ids', 'loss_mask', 'text', 'metadata'] : ['id', 'status', 'conversations'];
  if (Object.keys(row).join() !== allowed.join()) note('wrong-keys');
}

/** Names and types of everything, in order; a whole and a fractional number are two types to Arrow. */
function formOf(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'object') return Object.entries(value).map(([key, entry]) => [key, formOf(entry)]);
  return typeof value === 'number' ? (Number.isInteger(value) ? 'whole' : 'fraction') : typeof value;
}

function checkTokens(row, { vocabularySize = Number.MAX_SAFE_INTEGER, maxLength = Number.MAX_SAFE_INTEGER }, note) {
  const { input_ids: ids, loss_mask: mask } = row;
  if (!Array.isArray(ids) || !Array.isArray(mask)) return note('lists-missing');
  if (ids.length !== mask.length) note('lengths-differ');
  if (ids.length < 2) note('too-short');
  if (!ids.every((id) => Number.isSafeInteger(id) && id >= 0 && id < vocabularySize)) note('id-out-of-range');
  if (!mask.every((bit) => bit === 0 || bit === 1)) note('mask-not-binary');
  const ones = mask.filter((bit) => bit === 1).length;
  if (ones === 0) note('mask-empty');
  else if (!mask.slice(0, maxLength).includes(1)) note('mask-empty-after-cut');
  if (row.metadata?.turns === 1 && mask.lastIndexOf(0) > mask.indexOf(1)) note('mask-not-one-block');
  if (typeof row.text === 'string' && !isText(row.text)) note('text-not-well-formed');
  const usage = row.metadata?.usage;
  if (usage?.total_tokens !== ids.length || usage?.completion_tokens !== ones) note('usage-differs');
}

/** Returns whether the row's answers carry reasoning, or undefined where that cannot be said. */
function checkConversation(row, note) {
  if (row.status !== 'success') note('status');
  if (!Array.isArray(row.conversations) || row.conversations.length === 0) return void note('no-messages');
  let expected = 'user';
  let hasUser = false;
  for (const [index, message] of row.conversations.entries()) {
    const { role, content } = message;
    if (typeof content !== 'string' || content.trim() === '') note('empty-content');
    else if (!isText(content)) note('text-not-well-formed');
    if (role === 'system' && index === 0) continue;
    if (role !== expected) note('order');
    hasUser ||= role === 'user';
    expected = role === 'user' ? 'assistant' : 'user';
    if (role === 'assistant') checkAnswer(message, note);
  }
  if (!hasUser) note('no-user');
  if (row.conversations.at(-1).role !== 'assistant') note('last-not-assistant');
  const answers = row.conversations.filter((message) => message.role === 'assistant');
  const withReasoning = answers.filter((message) => 'reasoning_content' in message).length;
  if (withReasoning !== 0 && withReasoning !== answers.length) note('reasoning-varies');
  return answers.length === 0 ? undefined : withReasoning > 0;
}

function checkAnswer(message, note) {
  if (/<\/?think>/i.test(`${message.content}${message.reasoning_content ?? ''}`)) note('think-marker');
  if ('reasoning_content' in message && typeof message.reasoning_content !== 'string') note('reasoning-not-text');
  if (typeof message.reasoning_content === 'string' && !isText(message.reasoning_content)) note('text-not-well-formed');
  const extra = Object.keys(message).filter((key) => !['role', 'content', 'reasoning_content'].includes(key));
  if (extra.length > 0) note('wrong-message-keys');
}

function isText(value) {
  return value.isWellFormed() && !value.includes('\u0000');
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [folder, ...rest] = process.argv.slice(2);
  const limit = (name) => (rest.includes(name) ? Number(rest[rest.indexOf(name) + 1]) : Number.MAX_SAFE_INTEGER);
  const seen = readExport(folder, { vocabularySize: limit('--vocabulary'), maxLength: limit('--max-length') });
  for (const { file, line, code } of seen.findings.slice(0, 100)) console.log(`${file}:${line} ${code}`);
  console.log(
    `${seen.files.length} files, ${seen.tokenRows.length} token rows, ${seen.conversationRows.length} conversation rows, ${seen.findings.length} findings`,
  );
  process.exitCode = seen.findings.length === 0 ? 0 : 1;
}
