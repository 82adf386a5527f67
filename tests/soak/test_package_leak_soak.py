"""A thousand random policies, labels and requests: nothing that may not be seen is anywhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings

from tests.research.packages.leaking import Case, Watched, cases
from tests.research.sources.everything import fill


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    folder = tmp_path_factory.mktemp("leaking")
    fill(folder / "index")
    made = Watched(folder / "index", folder)
    yield made
    made.index.close()


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=cases())
def test_a_thousand_requests_leak_nothing(watched: Watched, case: Case) -> None:
    watched.check(case)
