"""The trainers' own code that runs without torch: from their published packages, or from a checkout.

Where a file needs torch for other things, the functions that read data are cut out of it and run as they are; `--full`
imports the packages whole.
"""

import importlib.util
import json
import subprocess
import sys
import types
from pathlib import Path

from byte_level_tokenizer import ByteLevelTokenizer
from job import Refused, Skip, broken_copies, broken_tokens, check, count_lines, cut_out, expect, must_refuse, rows_of
from offline_reader import read_export

MAX_LENGTH = 8192


def run(job):
    run_offline(job)
    check(job, "SpecForge", "prepare_prompt_tasks, tokens/", specforge_tokens)
    check(job, "SpecForge", "validate_regenerated_data, conversations/", specforge_conversations)
    check(job, "speculators", "load_raw_dataset, tokens/ and single parts", speculators_load)
    check(job, "Model-Optimizer", "ShardedDataset._load_dataset, messages/", modelopt_load)
    check(job, "datasets", "load_dataset, parquet/", parquet_load)
    check(job, "Automodel", "_load_openai_messages and _normalize_messages", automodel_load)


def run_offline(job):
    for target in job.exports:
        if target == "parquet":
            continue  # the standard library has no Parquet; `datasets` reads it below
        check(job, "formats reader", f"export for {target}", lambda job, target=target: read_offline(job, target))


def read_offline(job, target):
    folder = job.exports[target]
    tokenizer = ByteLevelTokenizer(job.tokenizer)
    read = read_export(target, folder, tokenizer)
    if read.problems:
        raise Refused(f"{len(read.problems)} problems: " + "; ".join(read.problems[:5]))
    for name, broken in broken_tokens(folder, Path(job.scratch, "offline", target)):
        if not read_export(target, broken, tokenizer).problems:
            raise Refused(f"control: the reader took a broken file ({name})")
    how = f"Python {sys.version.split()[0]} alone; {read.summary()}"
    return len(read.tokens) + len(read.conversations), how


def load_by_path(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def specforge_tokens(job):
    path, how = job.source("SpecForge", "specforge/data/prompt_builder.py")
    builder = load_by_path("prompt_builder", path)

    def read(file):
        return builder.prepare_prompt_tasks(
            file,
            None,
            chat_template=None,
            max_length=MAX_LENGTH,
            is_preformatted=False,
            train_only_last_turn=False,
            cache_dir=None,
            cache_key=None,
            num_proc=None,
            min_loss_tokens=1,
        )

    files = job.files("specforge", "tokens")
    for file in files:
        tasks = [task["payload"] for task in read(file)]
        expect(f"{Path(file).name}: prompts kept", len(tasks), count_lines([file]))
        for task, row in zip(tasks, rows_of([file])):
            expect(f"{row['id']}: ids", task["input_ids"], row["input_ids"])
            expect(f"{row['id']}: mask", task["loss_mask"], row["loss_mask"])
    for name, folder in broken_tokens(Path(files[0]).parent, Path(job.scratch, "specforge")):
        must_refuse(name, lambda folder=folder: read(next(str(p) for p in Path(folder).iterdir())))
    return count_lines(files), how


def specforge_conversations(job):
    path, how = job.source("SpecForge", "scripts/validate_regenerated_data.py")

    def validate(file):
        command = [sys.executable, "-W", "error", str(path), "--data-path", str(file), "--strict-think-markers"]
        ran = subprocess.run(command, cwd=path.parent.parent, capture_output=True, text=True, encoding="utf-8")
        if ran.returncode != 0:
            raise Refused(f"{Path(file).name}: {ran.stderr.strip()[-600:]}")

    files = job.files("specforge", "conversations")
    for file in files:
        validate(file)
    row = next(rows_of(files))
    unanswered = Path(job.scratch, "unanswered.jsonl")
    unanswered.write_text(json.dumps({**row, "conversations": row["conversations"][:-1]}) + "\n", encoding="utf-8")
    must_refuse("a conversation without its answer", lambda: validate(unanswered))
    return count_lines(files), how


def hugging_face_datasets():
    try:
        import datasets
    except ImportError:
        raise Skip("the Python package datasets is not at hand") from None
    return datasets


def speculators_load(job):
    path, how = job.source(
        "speculators", "speculators/data_generation/preprocessing.py", "src/speculators/data_generation/preprocessing.py"
    )
    datasets = hugging_face_datasets()
    load = cut_out(path, ["load_raw_dataset"], {"load_dataset": datasets.load_dataset, "Path": Path})["load_raw_dataset"]
    files = job.files("speculators", "tokens")
    folder = str(Path(files[0]).parent)
    for place, rows in [(folder, count_lines(files)), *((file, count_lines([file])) for file in files)]:
        loaded, _ = load(place)
        expect(f"{place}: rows", len(loaded), rows)
        expect("types", (str(loaded.features["input_ids"]), str(loaded.features["loss_mask"])), TOKEN_TYPES)
    for name, broken in broken_copies(files[0], Path(job.scratch, "speculators")).items():
        must_refuse(name, lambda broken=broken: load(broken))
    return count_lines(files), f"{how}; datasets {datasets.__version__}"


TOKEN_TYPES = ("List(Value('int64'))", "List(Value('int64'))")


def modelopt_load(job):
    path, how = job.source("Model-Optimizer", "modelopt/torch/utils/plugins/transformers_dataset.py")
    datasets = hugging_face_datasets()
    import itertools
    import os

    given = {"load_dataset": datasets.load_dataset, "itertools": itertools, "os": os}
    load_dataset = cut_out(path, ["_load_dataset"], given)["_load_dataset"]

    def load(place):
        self = types.SimpleNamespace(
            name="json", subset=None, data_files=place, split="train", num_shards=1, shard_index=0, num_streaming_samples=None
        )
        load_dataset(self)
        return self._raw_samples

    files = job.files("modelopt", "messages")
    for place, rows in [(str(Path(files[0]).parent), count_lines(files)), *((file, count_lines([file])) for file in files)]:
        expect(f"{place}: rows", len(load(place)), rows)
    broken = broken_copies(files[0], Path(job.scratch, "modelopt"))["torn-line"]
    must_refuse("torn-line", lambda: load(broken))
    return count_lines(files), f"{how}; datasets {datasets.__version__}"


def automodel_load(job):
    path, how = job.source("Automodel", "nemo_automodel/components/datasets/llm/chat_dataset.py")
    names = ["_is_hf_repo_id", "_as_iter", "_load_openai_messages", "_normalize_messages"]
    import logging
    import re
    from collections.abc import Sequence

    given = {"json": json, "logging": logging, "re": re, "Path": Path, "Sequence": Sequence}
    cut = cut_out(path, names, given)
    files = job.files("automodel", "messages")
    rows = cut["_load_openai_messages"](files)
    expect("rows", len(rows), count_lines(files))
    for row, ours in zip(rows, rows_of(files)):
        normal = cut["_normalize_messages"](row["messages"])
        wanted = [(m["role"], m["content"]) for m in ours["messages"]]
        expect("messages", [(m["role"], m["content"]) for m in normal], wanted)
    broken = broken_copies(files[0], Path(job.scratch, "automodel"))["torn-line"]
    must_refuse("torn-line", lambda: cut["_load_openai_messages"]([str(next(Path(broken).iterdir()))]))
    return len(rows), how


def parquet_load(job):
    """No trainer's own code: three of the four read Parquet with this library."""
    datasets = hugging_face_datasets()
    if "parquet" not in job.exports:
        raise Skip("aerie export does not know parquet")
    folder = Path(job.exports["parquet"])
    tables = {place.name: sorted(str(path) for path in place.glob("*.parquet")) for place in folder.iterdir() if place.is_dir()}
    total = 0
    for name, files in tables.items():
        if not files:
            raise Refused(f"{name}/ holds no .parquet file")
        loaded = datasets.load_dataset("parquet", data_files=files, split="train")
        total += len(loaded)
        if name == "tokens":
            same_tokens(job, loaded)
        for row in loaded if name == "messages" else []:
            expect(f"{row['id']}: the last message is by", row["messages"][-1]["role"], "assistant")
    return total, f"datasets {datasets.__version__}; {', '.join(sorted(tables))}"


def same_tokens(job, loaded):
    """The same rows as in the JSON export, number for number."""
    rows = {row["id"]: row for row in rows_of(job.files("specforge", "tokens"))}
    expect("rows of tokens/", len(loaded), len(rows))
    for row in loaded:
        for column in ("input_ids", "loss_mask"):
            expect(f"{row['id']}: {column}", row[column], rows[row["id"]][column])
