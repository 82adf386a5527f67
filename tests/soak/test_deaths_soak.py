"""The other ways in which a process may end once, in every stage."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "ingest"))  # where the tests of ingest have their helpers

from faulty import FaultyCtx

from tests.ingest.test_deaths import (  # noqa: F401  fixtures among them
    PLACES,
    assert_complete,
    ctx,
    docs,
    failures,
    home,
    index,
    ingest,
)


@pytest.mark.parametrize("how", ["crash once", "exit once"])
def test_processes_that_die_once_cost_nothing(ctx: FaultyCtx, docs: Path, index: Path, how: str) -> None:  # noqa: F811
    ctx.set(**dict.fromkeys(PLACES, how))
    said = ingest(ctx, docs)
    assert (said.code, failures(said), ctx.met()) == (0, [], 3), said.err
    assert_complete(index)
