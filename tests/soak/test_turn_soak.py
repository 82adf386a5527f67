"""Two thousand turns by eight workers, while their memory service is killed, hung and garbled at random."""

from __future__ import annotations

import pytest

from tests.serving import allow_loopback
from tests.soak.turns import LIMIT, TurnSoak


def test_two_thousand_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_loopback(monkeypatch)
    soak = TurnSoak(turns=2000)
    soak.run()
    print(f"slowest {soak.slowest:.2f} s; {dict(soak.states)}; summaries {dict(soak.summaries)}")
    assert soak.problems == []
    assert soak.slowest < 2 * LIMIT + 1.0  # retrieval and summary, and a busy machine
    assert sum(soak.states.values()) == 2000
    assert {name.partition(",")[0] for name in soak.states} == {"normal", "degraded", "down"}
