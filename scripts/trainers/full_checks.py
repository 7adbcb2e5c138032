"""The trainers' packages imported whole, with torch and transformers: what they make of an export, down to the mask.

No weights: a tokenizer folder is enough, and the run has one. Where a package's own start needs a GPU or a framework that
has no part in reading data, only that one module is left empty, and the verdict says so.
"""

import importlib
import inspect
import os
import sys
import types
import warnings
from pathlib import Path

from job import Skip, check, count_lines, expect, rows_of

MAX_LENGTH = 1024
BATCH = 4


def run(job):
    check(job, "SpecForge", "build_eagle3_dataset and vocab map, conversations/", specforge_conversations)
    check(job, "speculators", "load_and_preprocess_dataset, folder, tokens/ and list", speculators_tokens)
    check(job, "Model-Optimizer", "ShardedDataset and LanguageDataCollator, messages/", modelopt_messages)
    check(job, "Automodel", "build_eagle3_dataloader and token mapping, messages/", automodel_messages)


def versions():
    import torch
    import transformers

    return f"torch {torch.__version__}, transformers {transformers.__version__}"


def package(job, trainer, *paths):
    """Puts the package's folder first on the path -> how it was had."""
    try:
        import datasets  # noqa: F401
        import torch  # noqa: F401
        import transformers  # noqa: F401
    except ImportError as error:
        raise Skip(f"{error.name} is not at hand") from None
    _, how = job.source(trainer, *paths)
    for place in reversed(job.packages[trainer]):  # a checkout comes first; the package after it knows its own version
        source = os.path.join(place["folder"], "src")
        sys.path.insert(0, source if os.path.isdir(source) else place["folder"])
    return how


def empty_packages(root, names):
    """Packages whose __init__ starts more than their data code needs: their folders stay, their start is left out."""
    for name in names:
        module = types.ModuleType(name)
        module.__path__ = [os.path.join(root, *name.split("."))]
        sys.modules[name] = module


def tokenizer_of(job):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(job.tokenizer)


def specforge_conversations(job):
    how = package(job, "SpecForge", "specforge/data/preprocessing.py")
    try:
        data = importlib.import_module("specforge.data.preprocessing")
    except ImportError as error:
        # Sequence parallelism over several GPUs; its two functions are not called when data is prepared.
        distributed = types.ModuleType("specforge.distributed")
        distributed.get_draft_sp_group = distributed.get_sp_ring_group = None
        sys.modules["specforge.distributed"] = distributed
        data = importlib.import_module("specforge.data.preprocessing")
        how += f", specforge.distributed left empty ({error.name})"
    from datasets import load_dataset

    files = job.files("specforge", "conversations")
    tokenizer = tokenizer_of(job)
    for file in files:
        raw = load_dataset("json", data_files=file, split="train")
        built = data.build_eagle3_dataset(raw, tokenizer, chat_template="qwen", max_length=MAX_LENGTH, num_proc=1)
        expect(f"{Path(file).name}: rows", len(built), count_lines([file]))
        taught = [int(row["loss_mask"].sum()) for row in built]
        expect(f"{Path(file).name}: rows that teach nothing", sum(count == 0 for count in taught), 0)
        folder = os.path.join(job.scratch, "specforge-map", Path(file).stem)
        vocabulary = max(tokenizer.get_vocab().values()) + 1
        mapping = data.generate_vocab_mapping_file(built, vocabulary, 64, cache_dir=folder)
        import torch

        expect("draft vocabulary", int(torch.load(mapping)["t2d"].sum()), 64)
    return count_lines(files), f"{how}; {versions()}"


def speculators_tokens(job):
    paths = ("speculators/data_generation/preprocessing.py", "src/speculators/data_generation/preprocessing.py")
    how = package(job, "speculators", *paths)
    try:
        data = importlib.import_module("speculators.data_generation.preprocessing")
    except ImportError as error:
        for name in [name for name in sys.modules if name.split(".")[0] == "speculators"]:
            del sys.modules[name]
        empty_packages(sys.path[0], ["speculators", "speculators.train", "speculators.models"])
        data = importlib.import_module("speculators.data_generation.preprocessing")
        how += f", models left out ({error.name})"
    import torch

    files = job.files("speculators", "tokens")
    rows = list(rows_of(files))
    supervised = sum(sum(row["loss_mask"]) for row in rows)
    counted = {}
    for row in rows:
        for token, bit in zip(row["input_ids"], row["loss_mask"]):
            if bit == 1:
                counted[token] = counted.get(token, 0) + 1
    # Releases before 0.9 always count, and know no such option.
    options = {"skip_token_freq": False}
    known = inspect.signature(data.load_and_preprocess_dataset).parameters
    options = {name: value for name, value in options.items() if name in known}
    ways = {"folder": [job.exports["speculators"]], "tokens": [str(Path(files[0]).parent)], "list": files}
    for way, places in ways.items():
        frequencies = os.path.join(job.scratch, f"speculators-{way}.pt")
        built, _ = data.load_and_preprocess_dataset(
            job.tokenizer,
            places,
            seq_length=MAX_LENGTH,
            build_dataset_num_proc=1,
            token_freq_path=frequencies,
            **options,
        )
        expect(f"{way}: rows", len(built), len(rows))
        expect(f"{way}: supervised tokens", sum(int(row["loss_mask"].sum()) for row in built), supervised)
        expect(f"{way}: token counts", torch.load(frequencies), counted)
    same_draft_vocabulary(job, counted)
    return len(rows), f"{how}; {versions()}"


def same_draft_vocabulary(job, counted):
    """Where the export has a map beside it: the map that the trainer itself would make of these counts."""
    import numpy

    folder = f"{job.exports['speculators']}.counts"
    if not os.path.isdir(folder):
        return
    ours = [numpy.load(os.path.join(folder, f"{name}.npy")) for name in ("d2t", "t2d")]
    build = importlib.import_module("speculators.train.vocab_mapping").build_vocab_mappings_from_distribution
    theirs = build(counted, len(ours[0]), len(ours[1]))
    for name, one, other in zip(("d2t", "t2d"), ours, theirs):
        expect(name, one.tolist(), other.tolist())


def modelopt_messages(job):
    how = package(job, "Model-Optimizer", "modelopt/torch/utils/plugins/transformers_dataset.py")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = importlib.import_module("modelopt.torch.utils.plugins.transformers_dataset")
    files = job.files("modelopt", "messages")
    dataset = data.ShardedDataset("json", data_files=str(Path(files[0]).parent))
    expect("rows", len(dataset), count_lines(files))
    tokenizer = tokenizer_of(job)
    plain = data.LanguageDataCollator(tokenizer, train_len=MAX_LENGTH, return_labels=True)
    tagged = tokenizer_of(job).chat_template
    answers = data.LanguageDataCollator(
        tokenizer_of(job),
        train_len=MAX_LENGTH,
        chat_template=with_generation_tags(tagged),
        answer_only_loss=True,
        return_labels=True,
    )
    for start in range(0, len(dataset), BATCH):
        rows = [dataset[index] for index in range(start, min(start + BATCH, len(dataset)))]
        batch = plain(rows)
        expect("batch", list(batch["input_ids"].shape), [len(rows), MAX_LENGTH])
        for row, ids, kept in zip(rows, batch["input_ids"], batch["attention_mask"]):
            whole = tokenizer.apply_chat_template(row["messages"], tokenize=False)
            expect("ids", ids[kept == 1].tolist(), tokenizer.encode(whole, add_special_tokens=False))
        taught = (answers(rows)["labels"] != data.IGNORE_TOKEN_ID).sum(dim=1)
        expect("rows that teach nothing", int((taught == 0).sum()), 0)
    return len(dataset), f"{how}; {versions()}"


def with_generation_tags(template):
    """What the trainer asks of a template for answer_only_loss: the answers between {% generation %} tags."""
    message = "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    if message not in template:
        raise Skip("the run's chat template has another form than this check knows")
    head = "{{ '<|im_start|>' + message['role'] + '\\n' }}"
    body = "{{ message['content'] + '<|im_end|>' }}"
    tagged = "{% generation %}" + body + "{% endgeneration %}"
    either = "{% if message['role'] == 'assistant' %}" + tagged + "{% else %}" + body + "{% endif %}{{ '\\n' }}"
    return template.replace(message, head + either)


def automodel_messages(job):
    how = package(job, "Automodel", "nemo_automodel/components/datasets/llm/eagle3.py")
    try:
        data = importlib.import_module("nemo_automodel.components.datasets.llm.eagle3")
    except ImportError as error:
        name = "nemo_automodel.components.datasets.llm"
        empty_packages(sys.path[0], [name])
        data = importlib.import_module(f"{name}.eagle3")
        how += f", other data sets left out ({error.name})"
    files = job.files("automodel", "messages")
    tokenizer = tokenizer_of(job)
    loader = data.build_eagle3_dataloader(
        data_path=files, tokenizer=tokenizer, seq_length=MAX_LENGTH, batch_size=BATCH, shuffle=False
    )
    rows = empty = 0
    for batch in loader:
        taught = (batch["loss_mask"] * batch["attention_mask"]).sum(dim=1)
        rows += len(taught)
        empty += int((taught == 0).sum())
    expect("rows", rows, count_lines(files))
    expect("rows that teach nothing", empty, 0)
    vocabulary = max(tokenizer.get_vocab().values()) + 1
    selected, mask = data.build_eagle3_token_mapping(loader, target_vocab_size=vocabulary, draft_vocab_size=64)
    expect("draft vocabulary", (len(selected), int(mask.sum())), (64, 64))
    return rows, f"{how}; {versions()}"
