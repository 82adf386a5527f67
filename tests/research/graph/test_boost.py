"""What the best pages refer to is worth something where they speak of the question."""

from __future__ import annotations

import pytest

from research.graph.extraction import reference_name
from research.graph.neighbourhood import Edge, neighbour_scores, references_said, spread
from research.graph.references import Reference

TABLE = reference_name(Reference("table", "5"))
RANKED = [("a", 0.8), ("b", 0.7), ("c", 0.65), ("d", 0.5), ("e", 0.4)]


def worth(source: str, target: str, kind: str = "refers", said: int = TABLE) -> dict[str, float]:
    return neighbour_scores(RANKED, [Edge(source, kind, target, frozenset({TABLE}))], {"a": {said}})


def test_what_the_best_refers_to_is_worth_less_than_it() -> None:
    assert worth("a", "x") == pytest.approx({"x": 0.72})
    assert worth("a", "e") == pytest.approx({"e": 0.72}), "also of what was found, and is worth less by itself"
    assert worth("d", "x") == worth("x", "a") == worth("a", "x", "contains") == worth("a", "b") == {}
    assert worth("x", "a", "supports") == pytest.approx({"x": 0.48})
    assert worth("a", "x", said=1) == {}, "the page says it elsewhere"


def test_where_a_page_speaks_of_the_question() -> None:
    text = (
        "Rents in the harbour district rose. As Table 5 shows, wages did not. Something else is told here.\n"
        "Another thing again. Trees are listed in Table 6. The end."
    )
    assert references_said("How did rents in the harbour district develop?", text) == {TABLE}
    assert references_said("Which trees are there?", text) == frozenset(), "one word is not enough"
    assert references_said("", text) == frozenset()


def test_ways_through_the_graph_count_by_what_they_begin_with() -> None:
    circle = [("a", "b", 0.6), ("b", "c", 0.6), ("c", "a", 0.6)]
    assert spread(circle, {"a": 0.5}) == pytest.approx({"b": 0.3, "c": 0.3, "a": 0.18})
    assert spread([("s", "a", 0.1), ("s", "b", 0.1)], {"a": 0.5})["b"] < 0.01
