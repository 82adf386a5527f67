"""No leak: whatever the policy, the labels, the principal and the request are, what may not be seen is nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import built_once
from tests.pace import draws
from tests.research.governance.canaries import NAME, fill
from tests.research.governance.leak_drawing import beside
from tests.research.governance.leak_watching import Looking, Watched, look_at_many


@pytest.fixture
def watched(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, loopback: None) -> Iterator[Watched]:
    made = Watched(built_once(tmp_path_factory, NAME, fill), tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("number", [16, pytest.param(60, marks=pytest.mark.slow)])
def test_what_may_not_be_seen_is_nowhere(watched: Watched, number: int) -> None:
    """`make soak` looks at a thousand."""
    look_at_many(watched, draws(number))
    assert watched.seen > 10 * watched.examples, "whatever may be seen is found in what is looked at"


def test_a_quote_does_not_stand_under_a_heading_of_a_page_that_is_denied(watched: Watched) -> None:
    for example in beside(watched.corpus, "salaries"):
        Looking(watched, example).ask()


@pytest.mark.slow
def test_what_lies_beside_a_page_tells_nothing_of_it(watched: Watched) -> None:
    """A sentence that runs on to it, the section that begins on it, a heading that later pages stand under."""
    for example in beside(watched.corpus, "salaries"):
        Looking(watched, example, every_way=True).look()
