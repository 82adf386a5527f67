"""Context of several sources and the premortem, with 10,000 items of each kind: time, memory, and duplicates.

python -m tests.bench context [--keep FOLDER]

Items are made text with made vectors, written through the real store. What is held against is the machine's own pace: a
plain search of documents in the same index, in turns with it.
"""

from __future__ import annotations

import gc
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from research.context.duplicates import without_duplicates
from research.encoders.minilm import MiniLMEncoder
from research.index import Index
from research.models import Item
from research.sources import CONTEXT_TYPES, CommitResult, MemoryResult, ValueResult
from research.sources.records import item_of
from research.store import (
    Catalog,
    IndexPaths,
    NewItem,
)
from tests.bench.made import Words, fill, questions
from tests.bench.table import line, median, title
from tests.research.sources.test_context_duplicates import are_alike

ITEMS = 10_000
PAGES = 3_000  # of documents, for what is held against
ROUNDS = 25
FIVE = [name for name in CONTEXT_TYPES if name != "documents"]
DOMAINS = ("debugging", "refactoring", "feature", "testing", "performance")
STRATEGIES = ("read-the-error", "systematic-elimination", "research-first", "trial-and-error")
_A_PART = 500


def run(keep: Path | None = None) -> None:
    _duplicates()
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        title(f"Context of several sources, {ITEMS:,} items of each")
        root = filled(folder / f"context-{ITEMS}")
        done = subprocess.run(
            [sys.executable, "-m", "tests.bench.context", str(root)], check=True, capture_output=True, text=True
        )
        took: dict[str, Any] = json.loads(done.stdout)
        plain = took["documents"]
        line("plain search of documents", f"{plain * 1e3:.0f} ms CPU", f"{PAGES:,} pages")
        for name, aim in (
            ("assemble_context", "1 s"),
            ("with documents", "1 s"),
            ("premortem", "1.5 s"),
            ("ask of all types", "1 s"),
        ):
            against = f"{took[name] / plain:.1f} of a plain search; {took[f'{name} wall'] * 1e3:.0f} ms wall"
            line(name, f"{took[name] * 1e3:.0f} ms CPU", f"{against}; aim: < {aim}")
        line("assemble_context without searching", f"{took['assemble'] * 1e3:.0f} ms wall", "aim of the seed: < 160")
        line("memory of a context beyond the open index", f"{took['memory']:.1f} MB", "aim: < 50")


def filled(root: Path, items: int = ITEMS) -> Path:
    """An index with so many items of each kind."""
    if (root / "filled").exists():
        line("filling", "kept")
        return root
    shutil.rmtree(root, ignore_errors=True)
    started = time.perf_counter()
    fill(root, PAGES, 1)
    words = Words(7)
    with Index(root) as index:
        index.memories.remember_batch(words.text(n % 400, 18) for n in range(items))
        index.experiences.put(_experience(words, n) for n in range(items))
    with Catalog(IndexPaths(root), writable=True) as catalog:
        for kind, make in (("code", _code), ("commit", _commit), ("value", _value)):
            for start in range(0, items, _A_PART):
                made = [make(words, number) for number in range(start, start + _A_PART)]
                catalog.items.put(kind, f"/made/{kind}", "1", made, replace=False)
        _write_vectors(catalog)
    (root / "filled").touch()
    line("filling", f"{time.perf_counter() - started:.0f} s")
    return root


def _experience(words: Words, number: int) -> dict[str, Any]:
    topic = number % 400
    told = {name: words.text(topic, 12) for name in ("goal", "hypothesis", "action", "prediction", "outcome_result")}
    more = {name: words.text(topic, 12) for name in ("surprise", "root_cause", "lesson")}
    outcome = ("falsified", "confirmed", "abandoned")[number % 3]
    kinds = {"domain": DOMAINS[number % len(DOMAINS)], "strategy": STRATEGIES[number % len(STRATEGIES)]}
    return {"id": f"e{number}", **told, **more, **kinds, "outcome": outcome}


def _code(words: Words, number: int) -> NewItem:
    name = "_".join(words.text(number % 400, 3).replace(".", "").split())
    facts = {
        "file_path": f"src/{name}.py", "start_line": number, "end_line": number + 9, "language": "python",
        "qualified_name": name, "name": name, "unit_type": "function", "signature": f"def {name}(x):",
        "docstring": words.text(number % 400, 30),
    }  # fmt: skip
    return NewItem(f"{name}#{number}", name, f"{facts['signature']}\n{facts['docstring']}", metadata=facts)


def _commit(words: Words, number: int) -> NewItem:
    sha = f"{number:040x}"
    facts = {
        "sha": sha, "author": "Ana", "timestamp": "2026-01-01T00:00:00+00:00", "files_changed": [f"lib/{number}.py"],
        "insertions": 3, "deletions": 2,
    }  # fmt: skip
    return NewItem(sha, "", words.text(number % 400, 40), facts["timestamp"], facts)


def _value(words: Words, number: int) -> NewItem:
    facts = {
        "id": f"v{number}", "axis": "strategy", "cluster_id": f"c{number}", "cluster_size": 5,
        "similarity_to_centroid": 0.9, "experience": f"e{number}", "members": [],
    }  # fmt: skip
    return NewItem(f"v{number}", "", words.text(number % 400, 16), metadata=facts)


def _write_vectors(catalog: Catalog) -> None:
    encoder, pick = MiniLMEncoder(), np.random.default_rng(5)

    def vectors(count: int) -> Any:
        found = pick.standard_normal((count, encoder.dim)).astype(np.float32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    for kind in ("code", "commit", "value", "experience"):
        numbers = catalog.items.without_vectors(kind, encoder.name)
        for part in _parts(numbers, 5_000):
            catalog.items.write_vectors(encoder.name, part, vectors(len(part)))
    numbers = [int(row[0]) for row in catalog.execute("SELECT memory_no FROM memories")]
    with catalog.transaction() as connection:
        connection.memories.write_vectors("", encoder.name, numbers, vectors(len(numbers)))


def _parts(numbers: Sequence[int], size: int) -> Iterator[Sequence[int]]:
    return (numbers[start : start + size] for start in range(0, len(numbers), size))


def _measured(root: Path) -> dict[str, float]:
    first, *asked = questions(ROUNDS + 1)
    names = ("documents", "assemble_context", "with documents", "premortem", "ask of all types")
    took: dict[str, list[float]] = {name: [] for name in names}
    walls: dict[str, list[float]] = {name: [] for name in took}
    assemble: list[float] = []
    with Index.open(root) as index:
        ways: dict[str, Callable[[str, int], Any]] = {
            "documents": lambda question, _: index.search(question, num_results=20),
            "assemble_context": lambda question, _: index.context(question, FIVE),
            "with documents": lambda question, _: index.context(question, CONTEXT_TYPES),
            "premortem": lambda _, n: index.premortem(DOMAINS[n % 5], STRATEGIES[n % 4]),
            "ask of all types": lambda question, _: index.ask(question, types=CONTEXT_TYPES, num_results=20),
        }
        for way in ways.values():
            for _ in range(2):
                way(first, 0)
        gc.collect()
        before = _now()
        for question in asked[:5]:
            index.context(question, FIVE)
        memory = _status("VmHWM") / 1024 - before
        for number, question in enumerate(asked):
            for name, way in ways.items():
                started, cpu = time.perf_counter(), time.process_time()
                found = way(question, number)
                took[name].append(time.process_time() - cpu)
                walls[name].append(time.perf_counter() - started)
                if name == "assemble_context":
                    assert len(found.sources_used) == len(FIVE), found.sources_used
                    assert found.token_count <= 2000
                    assemble.append(found.timings["assemble"])
    summary = {name: median(times) for name, times in took.items()}
    wall = {f"{name} wall": median(times) for name, times in walls.items()}
    return {**summary, **wall, "assemble": median(assemble), "memory": max(0.0, memory)}


def _now() -> float:
    """Megabytes that are in use; from here on the peak is that of what follows."""
    Path("/proc/self/clear_refs").write_text("5", "utf-8")
    return _status("VmRSS") / 1024


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text("utf-8").splitlines()
    return next(int(text.split()[1]) for text in lines if text.startswith(name))


def _duplicates() -> None:
    title("Duplicates across sources")
    maker, pool = random.Random(16), _sentences()
    same = marks = longer = 0
    for number in range(100):
        text = " ".join(maker.sample(pool, maker.randint(1, 8)))
        same += are_alike(text, text)
        marks += are_alike(text, re.sub(r"[.,;:()]| (?= )", " ", text).replace(" ", "  "))
        long = maker.sample(pool, 11 + number % 8)
        at = maker.randrange(len(long))
        longer += are_alike(" ".join(long), " ".join(long[:at] + long[at + 1 :]))
    line("made pairs found", f"{same + marks + longer} of 300", f"same {same}, marks {marks}, a sentence more {longer}")
    others = maker.sample(list(combinations(pool, 2)), 300)
    line("different ones joined", f"{sum(are_alike(a, b) for a, b in others)} of 300", "aim: <= 3")
    for size in (3, 12):
        candidates = [_candidate(n, " ".join(maker.sample(pool, size))) for n in range(200)]
        times = []
        for _ in range(7):
            started = time.process_time()
            without_duplicates(candidates)
            times.append(time.process_time() - started)
        line(f"200 items of {size} sentences", f"{min(times) * 1e3:.0f} ms CPU", "aim: < 50")


def _candidate(number: int, text: str) -> Item:
    found = (
        MemoryResult(str(number), text, 0.5),
        CommitResult(str(number), text, 0.5),
        ValueResult(str(number), text, 0.5),
    )
    return item_of(found[number % 3])


def _sentences() -> list[str]:
    root = Path(__file__).parents[2]
    texts = [path.read_text("utf-8") for path in [*root.glob("*.md"), *(root / "data").glob("*.jsonl")]]
    return sorted(set(re.findall(r"[A-Z][^.!?\n|`\"{}]{30,160}[.!?]", "\n".join(texts))))


if __name__ == "__main__":
    print(json.dumps(_measured(Path(sys.argv[1]))))
