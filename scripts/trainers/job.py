"""What every check shares: the files of an export, one JSON line a verdict, and controls.

A control is a broken copy that a check must refuse: a check that takes it proves nothing, so its verdict is `failed`.
"""

import ast
import contextlib
import json
import sys
from pathlib import Path

VERDICTS = sys.stdout


class Skip(Exception):
    """The check cannot run here; not a failure. The message says why."""


class Refused(Exception):
    """The trainer's code ran and does not take the files."""


class Job:
    def __init__(self, spec):
        self.exports = {entry["target"]: entry["folder"] for entry in spec["exports"]}
        self.tokenizer = spec["tokenizer"]
        self.scratch = spec["scratch"]
        self.packages = spec.get("packages", {})

    def files(self, target, folder):
        """The parts below one subfolder of an export; Skip where `aerie export` does not know the target yet."""
        if target not in self.exports:
            raise Skip(f"aerie export does not know {target}")
        found = sorted(str(path) for path in Path(self.exports[target], folder).glob("*.jsonl"))
        if not found:
            raise Refused(f"{target}/{folder} holds no .jsonl file")
        return found

    def source(self, trainer, *paths):
        """Where a package or a checkout has one of these files -> (path, how)."""
        for place in self.packages.get(trainer, []):
            for path in paths:
                if Path(place["folder"], path).exists():
                    return Path(place["folder"], path), place["how"]
        raise Skip(f"{paths[-1]} is in no package or checkout of {trainer} at hand")


def check(job, trainer, name, action):
    """Runs one check and prints its verdict. `action` returns (rows, how)."""
    verdict = {"trainer": trainer, "check": name, "rows": 0, "how": "", "detail": ""}
    try:
        with contextlib.redirect_stdout(sys.stderr):
            verdict["rows"], verdict["how"] = action(job)
        verdict["verdict"] = "ok" if verdict["rows"] > 0 else "failed"
        if verdict["rows"] == 0:
            verdict["detail"] = "no row was read"
    except Skip as reason:
        verdict.update(verdict="skipped", detail=str(reason))
    except Exception as error:  # noqa: BLE001 - whatever a trainer raises is its verdict
        verdict.update(verdict="failed", detail=f"{type(error).__name__}: {error}"[:2000])
    print(json.dumps(verdict), file=VERDICTS, flush=True)


def expect(what, got, wanted):
    if got != wanted:
        raise Refused(f"{what}: {got}, expected {wanted}")


def must_refuse(name, read):
    """Runs `read` on a broken copy. It must raise."""
    try:
        read()
    except Exception:  # noqa: BLE001 - any refusal will do
        return
    raise Refused(f"control: the check took a broken file ({name}), so it proves nothing")


def count_lines(paths):
    return sum(Path(path).read_bytes().count(b"\n") for path in paths)


def rows_of(paths):
    for path in paths:
        for line in Path(path).read_text(encoding="utf-8").split("\n")[:-1]:
            yield json.loads(line)


def broken_copies(path, folder):
    """{name: folder with one broken copy of `path`}: a torn last line, and a file that is no data beside it."""
    text = Path(path).read_text(encoding="utf-8")
    copies = {}
    for name in ("torn-line", "stray-file"):
        place = Path(folder, name)
        place.mkdir(parents=True, exist_ok=True)
        last_line = text.rfind("\n", 0, -1) + 1
        torn = text[: last_line + 20] + "\n" if name == "torn-line" else text
        Path(place, Path(path).name).write_text(torn, encoding="utf-8")
        if name == "stray-file":
            Path(place, "manifest.json").write_text('{\n  "input_ids": "none",\n  "rows": {"a": 1}\n}\n', encoding="utf-8")
        copies[name] = str(place)
    return copies


def broken_tokens(source, target_folder):
    """Broken copies of a token export: (name, folder) of each. A reader that takes one of them proves nothing."""
    lines = None
    for path in sorted(Path(source).rglob("*.jsonl")):
        rows = path.read_text(encoding="utf-8").split("\n")[:-1]
        if rows and "input_ids" in json.loads(rows[0]):
            lines = rows
            break
    if lines is None:
        return
    first = json.loads(lines[0])
    broken = {
        "short-mask": [json.dumps({**first, "loss_mask": first["loss_mask"][:-1]}), *lines[1:]],
        "torn-line": [*lines[:-1], lines[-1][: len(lines[-1]) // 2]],
    }
    for name, rows in broken.items():
        folder = Path(target_folder, name)
        folder.mkdir(parents=True, exist_ok=True)
        Path(folder, "A.tokens-00000.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
        yield name, str(folder)


def cut_out(path, names, given):
    """Functions of a published file, run without importing what the rest of it needs (torch). `given`: their globals."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    kept = [node for node in ast.walk(tree) if is_named(node, names)]
    missing = set(names) - {name_of(node) for node in kept}
    if missing:
        raise Skip(f"{Path(path).name} has no {sorted(missing)} any more")
    head = ast.parse("from __future__ import annotations").body
    module = ast.Module(body=[*head, *kept], type_ignores=[])
    space = dict(given)
    exec(compile(ast.fix_missing_locations(module), str(path), "exec"), space)  # noqa: S102
    return space


def is_named(node, names):
    return name_of(node) in names


def name_of(node):
    if isinstance(node, ast.FunctionDef):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None
