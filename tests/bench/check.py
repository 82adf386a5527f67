"""The check of a written answer: how often its verdict is right, by kind of sentence, and what a sentence costs.

    make bench ONLY="check --keep FOLDER"

Cases are made from the pages of data/ and of every index that lies in FOLDER, by rules (tests/research/answer), and
from those of data/ also by hand, and by a language model, judged by hand. A true sentence in other words may be called
doubtful, a false one must not be carried.
"""

from __future__ import annotations

import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from ingest import ingest
from research.index import Index
from research.settings import Settings
from research.store import IndexPaths
from tests.bench.table import line, title
from tests.research.answer.answer_cases import FALSE, Case, cases_from, is_right, verdict_of
from tests.research.answer.hand_cases import hand_cases, index_pages, no_harm_pages

_SAMPLES = Path(__file__).parents[2] / "data" / "samples"
_GOALS = {"verbatim": ".98 carried", "reworded": ".85 carried or doubtful"} | dict.fromkeys(FALSE, ".90 not carried")
_COUNT, _SEEDS = 60, (1, 2, 3)


def run(keep: Path | None = None) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "samples"
        with Index(root, Settings(images=False)) as index:
            ingest(index, [_SAMPLES])
        ours = index_pages(root) | no_harm_pages()
    _measure("data/, by rules", [case for seed in _SEEDS for case in cases_from(ours, seed, _COUNT)])
    written = [case for name in ("reworded.txt", "held_back.txt") for case in hand_cases(name, ours)]
    _measure("data/, by hand", written)
    _measure("data/, by a model", [*hand_cases("model_written.txt", ours)])
    for index_root in sorted(keep.iterdir()) if keep is not None and keep.is_dir() else ():
        if IndexPaths(index_root).catalog.is_file():
            pages = index_pages(index_root)
            _measure(index_root.name, [case for seed in _SEEDS for case in cases_from(pages, seed, _COUNT)])


def _measure(name: str, cases: Sequence[Case]) -> None:
    title(f"Check of an answer: {name}")
    verdicts: dict[str, Counter[str]] = defaultdict(Counter)
    right: Counter[str] = Counter()
    began = time.perf_counter()
    for case in cases:
        verdict = verdict_of(case).verdict
        verdicts[case.kind][verdict] += 1
        right[case.kind] += is_right(case, verdict)
    took = time.perf_counter() - began
    for kind, found in verdicts.items():
        count = found.total()
        shown = ", ".join(f"{verdict} {n / count:.3f}" for verdict, n in found.most_common())
        line(f"{kind}, {count}", f"{right[kind] / count:.3f}", f"goal {_GOALS.get(kind, '.90 not carried')}; {shown}")
    false = [kind for kind in verdicts if kind not in {"verbatim", "reworded"}]
    total = sum(verdicts[kind].total() for kind in false)
    line(f"all false ones, {total}", f"{sum(right[kind] for kind in false) / max(1, total):.3f}", "goal .90")
    for sort, kinds, goal in (("true", set(verdicts) - set(false), ".7"), ("false", false, "at most .05")):
        count = sum(verdicts[kind].total() for kind in kinds)
        carried = sum(verdicts[kind]["carried"] for kind in kinds)
        line(f"✓ of the {sort} ones, {count}", f"{carried / max(1, count):.3f}", f"goal {goal}")
    line("a sentence with its page", f"{1000 * took / max(1, len(cases)):.1f} ms")
