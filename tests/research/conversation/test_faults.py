"""Turns while the memory service is killed, hung and garbled: some of what tests/soak does for minutes."""

from __future__ import annotations

from tests.soak.turns import TurnSoak


def test_turns_are_built_whatever_happens_to_the_service(loopback: None) -> None:
    soak = TurnSoak(turns=240, every=0.05, pace=0.05)
    soak.run()
    assert soak.problems == []
    assert sum(soak.states.values()) == 240
    assert soak.summaries["stored"] > 0
