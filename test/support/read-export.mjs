/**
 * Reads an export as a careful trainer would, and says what is wrong with it. Written from the trainers' formats alone: it
 * imports nothing of Aerie, so a mistake that Aerie makes both in writing and in checking does not pass here.
 *
 *   node test/support/read-export.mjs FOLDER [--vocabulary N] [--max-length N] [--extended-mask]     exit 0 = nothing found, 1 = findings
 *
 * Checked: only data files in the folder; UTF-8, one JSON object a line, a newline at the end of each; the same keys and
 * types in every row of a shape, over all files; ids unique over all files of a shape.
 * Any line: nothing inside that Python's splitlines takes for its end, by which one trainer cuts files.
 * Token rows: whole-number ids in [0, vocabulary), equal lengths ≥ 2, masks of 0 and 1 with a 1 left after the cut at the
 * maximum length, a one-answer row is 0…0 1…1. Rows of messages: see `checkMessages`; of human and gpt: see `checkEagle`.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';

const NAME = /^.+\.((?:tool-)?(tokens|conversations|messages))-\d{5}\.jsonl$/;

/** The keys of each row, in order, and where its trainer's messages are. */
const KEYS = {
  tokens: ['id,primary_id,input_ids,loss_mask,text,metadata'],
  conversations: ['id,status,conversations', 'id,conversations'],
  messages: ['conversation_id,messages', 'id,messages'],
  'tool-messages': ['id,messages,tools'],
};

/**
 * @param {string} folder
 * @param {{vocabularySize?: number, maxLength?: number, extendedMask?: boolean}} [limits]
 */
export function readExport(folder, limits = {}) {
  const seen = { findings: [], tokenRows: [], conversationRows: [], messageRows: [], eagleRows: [], files: [] };
  const shapes = Object.fromEntries(Object.keys(KEYS).map((kind) => [kind, newShape()]));
  const kindsIn = new Map();
  for (const path of filesBelow(folder)) {
    const file = relative(folder, path);
    const [, kind, baseKind] = NAME.exec(basename(path)) ?? [];
    if (shapes[kind] === undefined) {
      seen.findings.push({ file, line: 0, code: 'stray-file' });
      continue;
    }
    seen.files.push(file);
    kindsIn.set(join(file, '..'), (kindsIn.get(join(file, '..')) ?? new Set()).add(baseKind));
    const note = (line, code) => seen.findings.push({ file, line, code });
    let reasoningOfFile;
    for (const { row, line } of readLines(path, note)) {
      checkShape(row, shapes[kind], kind, (code) => note(line, code));
      const reasons = checkRow(row, { kind, limits, seen, note: (code) => note(line, code) });
      if (reasoningOfFile !== undefined && reasons !== undefined && reasons !== reasoningOfFile) note(line, 'reasoning-varies');
      reasoningOfFile ??= reasons;
    }
  }
  for (const [parent, kinds] of kindsIn) if (kinds.size > 1) seen.findings.push({ file: parent, line: 0, code: 'mixed-folder' });
  return seen;
}

/** Returns whether the row's answers carry reasoning, or undefined where that cannot be said. */
function checkRow(row, { kind, limits, seen, note }) {
  if (kind === 'tokens') {
    seen.tokenRows.push(row);
    checkTokens(row, limits, note);
    return undefined;
  }
  if (kind !== 'conversations') {
    seen.messageRows.push(row);
    if (row.tools !== undefined && !Array.isArray(row.tools)) note('tools-not-a-list');
    return checkMessages(row.messages, kind === 'tool-messages', note);
  }
  if (row.status === undefined && row.conversations?.[0]?.from !== undefined) {
    seen.eagleRows.push(row);
    return checkEagle(row.conversations, note);
  }
  seen.conversationRows.push(row);
  if (row.status !== 'success') note('status');
  return checkMessages(row.conversations, false, note);
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
      const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(start, end));
      if (/[\u0085\u2028\u2029]/.test(text)) note(line, 'python-line-end');
      const row = JSON.parse(text);
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
  const id = row.id ?? row.conversation_id;
  if (typeof id !== 'string' || id.trim() === '') note('id-not-text');
  if (shape.ids.has(id)) note('duplicate-id');
  shape.ids.add(id);
  // What is in the lists of a conversation is checked there; here a list counts as a list.
  const form = JSON.stringify(formOf(row));
  shape.form ??= form;
  if (form !== shape.form) note('shape-varies');
  if (!KEYS[kind].includes(Object.keys(row).join())) note('wrong-keys');
}

/** Names and types of everything, in order; a whole and a fractional number are two types to Arrow. */
function formOf(value) {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'list';
  if (typeof value === 'object') return Object.entries(value).map(([key, entry]) => [key, formOf(entry)]);
  return typeof value === 'number' ? (Number.isInteger(value) ? 'whole' : 'fraction') : typeof value;
}

function checkTokens(row, limits, note) {
  const { vocabularySize = Number.MAX_SAFE_INTEGER, maxLength = Number.MAX_SAFE_INTEGER, extendedMask = false } = limits;
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
  const most = usage?.completion_tokens + (extendedMask ? row.metadata?.turns : 0);
  if (usage?.total_tokens !== ids.length || !(ones >= usage?.completion_tokens && ones <= most)) note('usage-differs');
}

/**
 * A system message at most, first; user and assistant in turn; with tools, results of tools between the answer that calls and
 * the next; an assistant last; nothing empty but a tool's result and an answer that calls.
 */
function checkMessages(messages, withTools, note) {
  if (!Array.isArray(messages) || messages.length === 0) return void note('no-messages');
  for (const [index, message] of messages.entries()) {
    const { role, content } = message;
    const mayBeEmpty = role === 'tool' || message.tool_calls !== undefined;
    if (typeof content !== 'string' || (!mayBeEmpty && content.trim() === '')) note('empty-content');
    else if (!isText(content)) note('text-not-well-formed');
    if (!mayFollow(messages[index - 1], message, withTools)) note('order');
    if (role === 'assistant') checkAnswer(message, note);
    else if (Object.keys(message).join() !== (role === 'tool' ? 'role,content,tool_call_id' : 'role,content'))
      note('wrong-message-keys');
  }
  if (!messages.some(({ role }) => role === 'user')) note('no-user');
  if (messages.at(-1).role !== 'assistant') note('last-not-assistant');
  const answers = messages.filter((message) => message.role === 'assistant');
  const withReasoning = answers.filter((message) => 'reasoning_content' in message).length;
  if (withReasoning !== 0 && withReasoning !== answers.length) note('reasoning-varies');
  return answers.length === 0 ? undefined : withReasoning > 0;
}

function mayFollow(before, message, withTools) {
  const called = withTools && (before?.tool_calls ?? []).length > 0;
  if (before === undefined) return ['system', 'user'].includes(message.role);
  if (before.role === 'assistant') return message.role === (called ? 'tool' : 'user');
  if (before.role === 'tool') return ['tool', 'assistant'].includes(message.role);
  return message.role === (before.role === 'system' ? 'user' : 'assistant');
}

/** human and gpt in turn, a gpt last, and no other key. */
function checkEagle(turns, note) {
  for (const [index, turn] of turns.entries()) {
    if (turn.from !== ['human', 'gpt'][index % 2]) note('order');
    if (Object.keys(turn).join() !== 'from,value') note('wrong-message-keys');
    if (typeof turn.value !== 'string' || turn.value.trim() === '') note('empty-content');
    else if (!isText(turn.value)) note('text-not-well-formed');
  }
  if (turns.length % 2 !== 0) note('last-not-assistant');
  return undefined;
}

function checkAnswer(message, note) {
  if (/<\/?think>/i.test(`${message.content}${message.reasoning_content ?? ''}`)) note('think-marker');
  if ('reasoning_content' in message && typeof message.reasoning_content !== 'string') note('reasoning-not-text');
  if (typeof message.reasoning_content === 'string' && !isText(message.reasoning_content)) note('text-not-well-formed');
  const extra = Object.keys(message).filter((key) => !['role', 'content', 'reasoning_content', 'tool_calls'].includes(key));
  for (const call of message.tool_calls ?? []) {
    const isCall = call.type === 'function' && typeof call.id === 'string' && typeof call.function?.name === 'string';
    if (!isCall || typeof call.function.arguments !== 'object' || call.function.arguments === null) note('call-not-well-formed');
  }
  if (extra.length > 0) note('wrong-message-keys');
}

function isText(value) {
  return value.isWellFormed() && !value.includes('\u0000');
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [folder, ...rest] = process.argv.slice(2);
  const limit = (name) => (rest.includes(name) ? Number(rest[rest.indexOf(name) + 1]) : Number.MAX_SAFE_INTEGER);
  const limits = {
    vocabularySize: limit('--vocabulary'),
    maxLength: limit('--max-length'),
    extendedMask: rest.includes('--extended-mask'),
  };
  const seen = readExport(folder, limits);
  for (const { file, line, code } of seen.findings.slice(0, 100)) console.log(`${file}:${line} ${code}`);
  console.log(
    `${seen.files.length} files, ${seen.tokenRows.length} token rows, ` +
      `${seen.conversationRows.length + seen.messageRows.length + seen.eagleRows.length} conversation rows, ${seen.findings.length} findings`,
  );
  process.exitCode = seen.findings.length === 0 ? 0 : 1;
}
