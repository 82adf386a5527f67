"""A thousand random policies, labels, principals and requests: what may not be seen is in nothing that comes out, and
in nothing that is written down."""

from __future__ import annotations

import time
from pathlib import Path

from hypothesis import settings

from tests.research.governance.canaries import fill
from tests.research.governance.leak_watching import Watched, look_at_many

EXAMPLES = 1000


def test_a_thousand_examples(tmp_path: Path, loopback: None) -> None:
    fill(tmp_path / "made" / "index")
    watched = Watched(tmp_path / "made" / "index", tmp_path)
    start = time.monotonic()
    try:
        look_at_many(watched, settings(max_examples=EXAMPLES, derandomize=False, database=None))
    finally:
        watched.close()
    print(
        f"{watched.examples} examples in {time.monotonic() - start:.0f} s: {watched.checks} texts looked at,"
        f" {watched.seen} canaries that may be seen, none that may not"
    )
    assert watched.examples >= EXAMPLES
    assert watched.seen > 10 * EXAMPLES
