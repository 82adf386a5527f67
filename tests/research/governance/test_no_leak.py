"""No leak: whatever the policy, the labels, the principal and the request are, what may not be seen is nowhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import built_once
from tests.research.governance.canaries import NAME, fill
from tests.research.governance.leak_drawing import Example, examples
from tests.research.governance.leak_watching import Watched, look


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    source = built_once(tmp_path_factory, NAME, fill)
    folder = tmp_path_factory.mktemp("watched")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        made = Watched(source, folder)
        yield made
        made.close()


def test_what_may_not_be_seen_is_nowhere(watched: Watched) -> None:
    @settings(
        max_examples=120,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(examples(watched.corpus))
    def run(example: Example) -> None:
        look(watched, example)

    run()
