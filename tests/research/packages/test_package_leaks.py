"""Whatever the policy, the labels and the request are: text of what is denied, and what a redactor masks of the rest,
is in no package, cache, record, log, event, audit, error, metric or span. tests/soak has a thousand of these."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.research.packages.leaking import Case, Watched, cases


@pytest.fixture(scope="module")
def watched(of_everything: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("leaking")
    made = Watched(Path(shutil.copytree(of_everything, folder / "index")), folder)
    yield made
    made.index.close()


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_nothing_that_may_not_be_seen_is_anywhere(watched: Watched, case: Case) -> None:
    watched.check(case)


def test_what_may_be_seen_is_there(watched: Watched) -> None:
    """Or the test above would look at nothing."""
    case = Case(
        ("permit (principal, action, resource);",), ("Public",) * 8, ("final",) * 8, False,
        {"intent": "why do uploads stop", "pinned": ["memory:m1"]},
    )  # fmt: skip
    watched.check(case)
    assert "canary1x" in watched._kept()
    assert "person1x@example.com" in watched._kept()
