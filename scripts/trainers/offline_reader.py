"""Reads exports as a careful trainer would: a second opinion, written from the trainers' formats alone.

Standard library only. It shares nothing with Aerie's own code or with test/support/read-export.mjs: a mistake made both in
writing and in checking there does not pass here. Each problem is one line `FILE:LINE what`.
"""

import json
import re
from pathlib import Path
from typing import NamedTuple

from draft_vocabulary import check_counts

WHITE = re.compile(r"\s*\Z")
THINK = re.compile(r"</?think>", re.IGNORECASE)


def read_export(target, folder, tokenizer):
    """-> what one export folder holds, and what is wrong with it."""
    problems = []
    seen = {"tokens": Shape(), "conversations": Shape()}
    kinds_of_folder = {}
    for path in sorted(p for p in Path(folder).rglob("*") if p.is_file()):
        name = str(path.relative_to(folder))
        if path.suffix not in (".json", ".jsonl"):
            continue  # trainers' folder loaders take no other suffix; parquet is read elsewhere
        for line, row in lines_of(path, name, problems):
            kind = "tokens" if "input_ids" in row else "conversations"
            kinds_of_folder.setdefault(path.parent, set()).add(kind)
            where = f"{name}:{line}"
            found = check_tokens(row, tokenizer) if kind == "tokens" else check_conversation(row, target)
            seen[kind].add(row, found, path)
            problems.extend(f"{where} {problem}" for problem in found)
    for place, kinds in kinds_of_folder.items():
        if len(kinds) > 1:
            problems.append(f"{place}: two row shapes in one folder")
    problems.extend(check_counts(f"{folder}.counts", seen["tokens"].rows, tokenizer.size))
    problems.extend(check_both(seen["tokens"].rows, seen["conversations"].rows))
    return Read(seen["tokens"].rows, seen["conversations"].rows, problems)


class Read(NamedTuple):
    tokens: list
    conversations: list
    problems: list

    def summary(self):
        several = sum(row["metadata"]["turns"] > 1 for row in self.tokens)
        cut = sum(row["metadata"]["is_truncated"] for row in self.tokens)
        return f"{len(self.tokens)} token rows ({several} of several turns, {cut} cut), {len(self.conversations)} conversations"


class Shape:
    """What must be the same in, or unique over, all rows of a kind."""

    def __init__(self):
        self.rows = []
        self.ids = set()
        self.forms = {}

    def add(self, row, found, path):
        self.rows.append(row)
        identity = row.get("id", row.get("conversation_id"))
        if not isinstance(identity, str) or not identity.strip():
            found.append("the id is not a non-empty string")
        elif identity in self.ids:
            found.append("the id was seen before")
        else:
            self.ids.add(identity)
        # Files of one name before the part number are loaded as one table: tools may have a family of files of their own.
        family = (str(path.parent), re.sub(r"-\d+\.jsonl$", "", path.name).split(".", 1)[-1])
        form = form_of(row)
        if self.forms.setdefault(family, form) != form:
            found.append("keys or types differ from the rows before")


def form_of(value):
    """Keys and types, as Arrow would infer them; what is in lists is looked at row by row."""
    if isinstance(value, dict):
        return tuple((key, form_of(entry)) for key, entry in value.items())
    return type(value).__name__


def lines_of(path, name, problems):
    data = path.read_bytes()
    if not data:
        problems.append(f"{name}: the file is empty")
    elif not data.endswith(b"\n"):
        problems.append(f"{name}: the last line has no end")
    try:
        text = data.decode("utf-8", errors="strict")
    except UnicodeDecodeError as error:
        problems.append(f"{name}: not UTF-8: {error}")
        return
    # splitlines() is what some loaders use: it must see the same lines as a split at the newline byte.
    if len(text.splitlines()) != text.count("\n"):
        problems.append(f"{name}: holds characters that Python's splitlines() takes for line ends")
    for number, line in enumerate(text.split("\n")[:-1], 1):
        try:
            row = json.loads(line, parse_constant=refuse_constant, object_pairs_hook=without_twins)
        except ValueError as error:
            problems.append(f"{name}:{number} not JSON: {error}")
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            problems.append(f"{name}:{number} not an object")


def refuse_constant(word):
    raise ValueError(f"{word} is not JSON")


def without_twins(pairs):
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key comes twice")
    return dict(pairs)


def check_tokens(row, tokenizer):
    ids, mask = row.get("input_ids"), row.get("loss_mask")
    if not isinstance(ids, list) or not isinstance(mask, list):
        return ["input_ids and loss_mask must be lists"]
    found = []
    if len(ids) != len(mask) or len(ids) < 2:
        return [f"{len(ids)} ids and {len(mask)} mask values"]
    if any(type(bit) is not int or bit not in (0, 1) for bit in mask):
        found.append("the mask holds something besides 0 and 1")
    if sum(bit == 1 for bit in mask) == 0:
        found.append("the mask teaches nothing")
    bad = [i for i in ids if type(i) is not int or not 0 <= i < tokenizer.size]
    if bad:
        return [*found, f"ids outside the vocabulary of {tokenizer.size}: {bad[:3]}"]
    metadata = row.get("metadata", {})
    turns = metadata.get("turns")
    blocks = blocks_of(ids, mask)
    if turns == 1 and len(blocks) != 1:
        found.append(f"one turn, but {len(blocks)} blocks of ones")
    if turns == 1 and mask and mask[-1] != 1:
        found.append("one turn, but the mask does not end with a one")
    # A model may have several ids that end an answer, all of them special; the tokenizer names one.
    has_stopped = metadata.get("finish_reason") == "stop"
    if (has_stopped and ids[-1] not in tokenizer.added) or (not has_stopped and ids[-1] in tokenizer.ends):
        found.append(f"finish_reason is {metadata.get('finish_reason')} and the last id is {ids[-1]}")
    usage = metadata.get("usage", {})
    if usage.get("total_tokens") != len(ids) or usage.get("completion_tokens") != sum(mask):
        found.append("usage does not count the ids")
    decoded = "\n\n".join(tokenizer.decode(block) for block in blocks).replace("\x00", "\ufffd")  # text is for people: no NUL
    if isinstance(turns, int) and turns == len(blocks) and decoded != row.get("text"):
        found.append(f"the taught ids read {decoded[:60]!r}, text says {str(row.get('text'))[:60]!r}")
    return found


def blocks_of(ids, mask):
    """The runs of ids with mask 1."""
    blocks, open_block = [], None
    for token, bit in zip(ids, mask):
        if bit == 1 and open_block is None:
            open_block = []
            blocks.append(open_block)
        if bit == 1:
            open_block.append(token)
        else:
            open_block = None
    return blocks


MESSAGES_KEY = {"specforge": "conversations", "eagle": "conversations", "modelopt": "messages", "automodel": "messages"}
COLUMNS = {
    "specforge": {"id", "status", "conversations"},
    "modelopt": {"conversation_id", "messages"},
    "automodel": {"id", "messages", "tools"},
    "eagle": {"id", "conversations"},
}


def check_conversation(row, target):
    found = []
    messages = row.get(MESSAGES_KEY.get(target, "messages"))
    if not isinstance(messages, list) or not messages:
        return ["no messages"]
    if set(row) - COLUMNS.get(target, set(row)):
        found.append(f"columns that would reach the chat template: {sorted(set(row) - COLUMNS[target])}")
    if target == "specforge" and row.get("status") != "success":
        found.append("status is not success")
    if target == "modelopt" and not row.get("conversation_id"):
        found.append("no conversation_id")
    eagle = target == "eagle"
    roles = [m.get("from" if eagle else "role") for m in messages]
    texts = [m.get("value" if eagle else "content") for m in messages]
    ask, answer = ("human", "gpt") if eagle else ("user", "assistant")
    body = roles[1:] if roles[0] == "system" and not eagle else roles
    has_tools = any(role == "tool" or "tool_calls" in message for role, message in zip(roles, messages))
    if not has_tools and body != [ask, answer] * (len(body) // 2) or not body:
        found.append(f"roles do not alternate up to an answer: {roles}")
    for role, text, message in zip(roles, texts, messages):
        found.extend(check_message(role, text, message, answer))
    reasons = ["reasoning_content" in m for m, role in zip(messages, roles) if role == answer]
    if any(reasons) and not all(reasons):
        found.append("reasoning_content on some answers only")
    return found


def check_message(role, text, message, answer):
    if not isinstance(text, str):
        return [f"the content of {role} is not text"]
    if WHITE.match(text) and role != "tool" and "tool_calls" not in message:
        return [f"the content of {role} is empty"]
    everything = text + str(message.get("reasoning_content", ""))
    found = []
    if "\x00" in everything or any("\ud800" <= letter <= "\udfff" for letter in everything):
        found.append("a NUL or half a character")
    if role == answer and THINK.search(everything):
        found.append("a think marker in an answer")
    return found


def check_both(tokens, conversations):
    """Where an export has both shapes, they must tell the same story."""
    answers = {}
    for row in conversations:
        answers[row.get("id")] = [m["content"] for m in row.get("conversations", []) if m.get("role") == "assistant"]
    problems = []
    for row in tokens:
        whole = row.get("metadata", {})
        name = str(row.get("id", "")).rsplit("_gen", 1)[0]
        if name in answers and whole.get("first_turn") == 0 and whole.get("turns") == len(answers[name]):
            if "\n\n".join(answers[name]) != row.get("text"):
                problems.append(f"{name}: token row and conversation hold different answers")
    return problems
