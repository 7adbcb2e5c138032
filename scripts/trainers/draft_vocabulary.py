"""Token counts and draft-vocabulary map beside an export, against its rows. Standard library only: NumPy's format is read here."""

import ast
import json
from array import array
from pathlib import Path


def check_counts(folder, rows, vocabulary):
    """The token counts and the draft vocabulary beside an export, where it was asked for: both follow from its rows."""
    if not Path(folder).is_dir():
        return []
    counts = {}
    for row in rows:
        for token, bit in zip(row["input_ids"], row["loss_mask"]):
            if bit == 1:
                counts[token] = counts.get(token, 0) + 1
    written = json.loads(Path(folder, "token_counts.json").read_text(encoding="utf-8"))
    problems = []
    if {int(token): count for token, count in written.items()} != counts:
        problems.append("token_counts.json does not count the taught ids")
    d2t, t2d = read_npy(Path(folder, "d2t.npy")), read_npy(Path(folder, "t2d.npy"))
    chosen = [draft + offset for draft, offset in enumerate(d2t)]
    if len(t2d) != vocabulary or chosen != [target for target, held in enumerate(t2d) if held]:
        problems.append("d2t and t2d do not name the same ids")
    left = [count for token, count in counts.items() if token not in chosen]
    if left and max(left) > min(counts.get(token, 0) for token in chosen):
        problems.append("an id was chosen before a more frequent one")
    return problems


def read_npy(path):
    """One-dimensional int64 or bool of NumPy's format 1.0, which is a magic word, a length, a Python dict and the bytes."""
    data = path.read_bytes()
    end = 10 + int.from_bytes(data[8:10], "little")
    header = ast.literal_eval(data[10:end].decode("latin-1").strip())
    values = array("q" if header["descr"] == "<i8" else "b")
    values.frombytes(data[end:])
    if header["shape"] != (len(values),) or header["descr"] not in ("<i8", "|b1"):
        raise ValueError(f"{path.name}: {header}")
    return values.tolist()
