"""Decoding of a byte-level BPE, from tokenizer.json alone. Standard library only."""

import json
from pathlib import Path


class ByteLevelTokenizer:
    def __init__(self, folder):
        spec = json.loads(Path(folder, "tokenizer.json").read_text(encoding="utf-8"))
        config = json.loads(Path(folder, "tokenizer_config.json").read_text(encoding="utf-8"))
        self.added = {entry["id"]: entry["content"] for entry in spec["added_tokens"]}
        self.tokens = {index: token for token, index in spec["model"]["vocab"].items()} | self.added
        self.size = max(self.tokens) + 1
        end = config.get("eos_token")
        end = end.get("content") if isinstance(end, dict) else end
        self.ends = {index for index, token in self.tokens.items() if token == end}
        printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
        rest = [byte for byte in range(256) if byte not in printable]
        self.bytes = {chr(b): b for b in printable} | {chr(256 + n): b for n, b in enumerate(rest)}

    def decode(self, ids):
        plain = (letter for i in ids if i not in self.added for letter in self.tokens[i])
        return bytes(self.bytes[letter] for letter in plain).decode("utf-8", errors="replace")
