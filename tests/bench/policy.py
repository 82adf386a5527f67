"""How long a policy takes to decide about 200 things, resources read and request built; and to look up what may be seen
of an index of which a quarter is denied and a quarter is redacted. Goal: at most 50 ms for the decision."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from research.governance import Principal
from research.governance.access import CLASSIFICATIONS
from research.store import restricted
from tests.bench.table import line, title
from tests.research.governance.governed_index import EXAMPLE, GovernedIndex

DOCUMENTS, PAGES, CANDIDATES, TIMES = 200, 50, 200, 50


def run() -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = GovernedIndex(Path(folder))
        text = "Write to anna@example.com about the price of tea. " * 40
        added = [
            made.add(
                f"{number}.pdf", [f"{number} {page} {text}" for page in range(PAGES)], folder=f"/docs/{number % 20}"
            )
            for number in range(DOCUMENTS)
        ]
        for number in range(20):
            made.classify(f"path:/docs/{number}", CLASSIFICATIONS[number % 4])
        refs = [made.page(number % PAGES + 1, added[number % DOCUMENTS]) for number in range(CANDIDATES)]
        access = made.access(Principal("me", owner=True), EXAMPLE)
        title(f"policy: {CANDIDATES} candidates of {DOCUMENTS * PAGES:,} pages, 20 rules for paths, the example policy")
        with made.catalog.snapshot() as reader:
            line("first decision, Cedar loaded", f"{_milliseconds(lambda: access.decide(reader, refs), 1):.1f} ms")
            line("decision, p50", f"{_milliseconds(lambda: access.decide(reader, refs)):.1f} ms", "goal 50 ms")
            begun = time.perf_counter()
            made.labels.proposals()
            line("marks looked for on all pages", f"{time.perf_counter() - begun:.2f} s")
        seen = restricted.RestrictedCatalog(made.catalog, access.see, lambda: access.revision)
        line("what may be seen, looked up for the first time", f"{_milliseconds(lambda: _look(seen), 1):.0f} ms")
        line("the same again, p50", f"{_milliseconds(lambda: _look(seen)):.2f} ms")
        seen.close()
        made.catalog.close()


def _look(seen: restricted.RestrictedCatalog) -> None:
    with seen.snapshot() as reader:
        reader.pages.totals()


def _milliseconds(call: Callable[[], object], times: int = TIMES) -> float:
    """The median, of the processor's time: others may use the machine, too."""
    taken = []
    for _ in range(times):
        begun = time.process_time()
        call()
        taken.append(1000 * (time.process_time() - begun))
    return sorted(taken)[len(taken) // 2]
