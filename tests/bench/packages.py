"""Context packages over 10,000 items: a package of 6,000 tokens beside a plain ask, and a cached one.

python -m tests.bench packages [--keep FOLDER]

The index is that of `context`: made text with made vectors, written through the real store. Both ways take turns, so
what the machine does besides falls on both.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from research.evaluation import Question, look_up, read_questions
from research.evaluation.questions import document_key
from research.index import Index
from tests.bench import crossrefs
from tests.bench.context import PAGES, filled
from tests.bench.graph import FEW_TOKENS, index_of
from tests.bench.made import questions
from tests.bench.table import line, median, title

TOKENS = 6_000
ITEMS = 2_000  # of each of five kinds: 10,000 together, beside the pages
ROUNDS = 25
GOLD_TOKENS = (600, 1500)  # in which not everything fits


def run(eval_folder: Path, keep: Path | None = None) -> None:
    _gold_pages(eval_folder, keep)
    with ExitStack() as stack:
        folder = keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        title(f"Context packages of {TOKENS:,} tokens, {5 * ITEMS:,} items and {PAGES:,} pages")
        root = filled(folder / f"context-{ITEMS}", ITEMS)
        done = subprocess.run(
            [sys.executable, "-m", "tests.bench.packages", str(root)], check=True, capture_output=True, text=True
        )
        took: dict[str, Any] = json.loads(done.stdout)
        line("plain ask", f"{took['ask'] * 1e3:.0f} ms", f"p50 of {ROUNDS}, of documents alone")
        for name, aim in (("documents alone", 2.0), ("all kinds", 2.0)):
            ratio = took[name] / took["ask"]
            line(f"package, {name}", f"{took[name] * 1e3:.0f} ms", f"{ratio:.2f} of a plain ask; aim: <= {aim:g}")
        line("ask --types, all kinds", f"{took['mixed'] * 1e3:.0f} ms", "the same sources without a package")
        line("a cached package", f"{took['cached'] * 1e3:.1f} ms", "aim: <= 5")


def _gold_pages(eval_folder: Path, keep: Path | None) -> None:
    """The graph helps or keeps quiet: packages with the gold page in them, without the graph → with it."""
    title("Packages that hold a gold page, without the graph → with it (won, lost)")
    with tempfile.TemporaryDirectory() as folder:
        documents = Path(folder) / "crossrefs"
        made = crossrefs.make(documents)
        ours = [question for questions in made.values() for question in questions]
        _one_set("ours, with cross references", index_of(documents, "crossrefs", Path(folder)), ours, FEW_TOKENS)
        for name in ("azure", "mmlongbench-dev"):
            if (eval_folder / name).is_dir():
                root = index_of(eval_folder / name / "pdfs", name, keep or Path(folder))
                _one_set(name, root, read_questions(eval_folder / name / "qrels.jsonl"), GOLD_TOKENS)


def _one_set(name: str, root: Path, asked: Sequence[Question], budgets: Sequence[int]) -> None:
    with Index(root) as index:
        index.graph.update()
        names = {document.doc_id: document_key(document.filename) for document in index.documents.list()}
        found = look_up(index.catalog, asked).askable
        for budget in budgets:
            have: dict[bool, list[bool]] = {False: [], True: []}
            for gold in found:
                for graph in (False, True):
                    sources = ["vector", "graph"] if graph else ["vector"]
                    package = index.packages.build(
                        {"intent": gold.question.query, "tokenBudget": budget, "retrieval": {"sources": sources}}
                    )
                    pages = {tuple(s.ref.removeprefix("page:").split("#")) for s in package.sources if s.kind == "page"}
                    have[graph].append(any((names[doc_id], int(page)) in gold.pages for doc_id, page in pages))
            won = sum(now and not before for before, now in zip(have[False], have[True], strict=True))
            lost = sum(before and not now for before, now in zip(have[False], have[True], strict=True))
            told = f"{sum(have[False])} → {sum(have[True])} of {len(found)}"
            line(f"{name}, {budget} tokens", told, f"won {won}, lost {lost}")


def measure(root: Path) -> dict[str, float]:
    from research.sources import CONTEXT_TYPES

    first, *asked = questions(ROUNDS + 1)
    with Index.open(root) as index:
        kept = index.packages.build({"intent": first}).context_package_id
        ways: dict[str, Callable[[str], object]] = {
            "ask": lambda question: index.ask(question, max_tokens=TOKENS),
            "documents alone": lambda question: index.packages.build(
                {"intent": question, "tokenBudget": TOKENS, "scope": {"types": ["documents"]}}
            ),
            "all kinds": lambda question: index.packages.build({"intent": question, "tokenBudget": TOKENS}),
            "mixed": lambda question: index.ask(question, max_tokens=TOKENS, types=CONTEXT_TYPES),
            "cached": lambda _: index.packages.get(kept),
        }
        for way in ways.values():
            way(first)
        took: dict[str, list[float]] = {name: [] for name in ways}
        for question in asked:
            for name, way in ways.items():
                started = time.perf_counter()
                way(question)
                took[name].append(time.perf_counter() - started)
    return {name: median(times) for name, times in took.items()}


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]))))
