"""What the best pages refer to joins a ranking, and displaces nothing that is stronger."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from research.graph.extraction import reference_name
from research.graph.neighbourhood import DEFAULT, Edge, neighbour_scores, references_said, seeds_of, with_neighbours
from research.graph.references import Reference

TABLE = reference_name(Reference("table", "5"))
RANKED = [("a", 0.8), ("b", 0.7), ("c", 0.65), ("d", 0.5), ("e", 0.4)]


def _edge(source: str, target: str, kind: str = "refers", name: int = TABLE) -> Edge:
    return Edge(source, kind, target, frozenset({name}))


def test_what_the_best_refers_to_comes_after_what_is_stronger() -> None:
    joined = with_neighbours(RANKED, [_edge("a", "x")])
    assert [each.ref for each in joined] == ["a", "b", "x", "c", "d", "e"]
    assert (joined[2].seed, joined[2].kind) == ("a", "refers")
    assert [each.ref for each in with_neighbours(RANKED, [_edge("d", "x")])] == ["a", "b", "c", "d", "e"]
    assert [each.ref for each in with_neighbours(RANKED, [_edge("x", "a")])] == ["a", "b", "c", "d", "e"]
    assert [each.ref for each in with_neighbours(RANKED, [_edge("a", "x", "contains")])] == ["a", "b", "c", "d", "e"]
    assert [each.ref for each in with_neighbours(RANKED, [_edge("a", "e")])] == ["a", "b", "e", "c", "d"]


def test_only_what_the_page_says_of_the_question_counts() -> None:
    edges = [_edge("a", "x")]
    assert neighbour_scores(RANKED, edges, {"a": {TABLE}}).keys() == {"x"}
    assert neighbour_scores(RANKED, edges, {"a": {1}}) == {} == neighbour_scores(RANKED, edges, {})


def test_where_a_page_speaks_of_the_question() -> None:
    text = (
        "Rents in the harbour district rose. As Table 5 shows, wages did not. Something else is told here.\n"
        "Another thing again. Trees are listed in Table 6. The end."
    )
    assert references_said("How did rents in the harbour district develop?", text) == {TABLE}
    assert references_said("Which trees are there?", text) == frozenset(), "one word is not enough"
    assert references_said("", text) == frozenset()


refs = st.sampled_from("abcdefghij")


@given(
    found=st.lists(st.tuples(refs, st.floats(0.01, 1)), max_size=8, unique_by=lambda each: each[0]),
    edges=st.lists(st.tuples(refs, st.sampled_from(["refers", "calls", "supports", "contains"]), refs), max_size=20),
)
def test_nothing_stronger_is_displaced(found: list[tuple[str, float]], edges: list[tuple[str, str, str]]) -> None:
    ranked = sorted(found, key=lambda each: -each[1])
    joined = with_neighbours(ranked, [Edge(*edge) for edge in edges])
    order = [each.ref for each in joined]
    assert len(set(order)) == len(order)
    assert set(order) >= {ref for ref, _ in ranked}
    came = {each.ref for each in joined if each.seed}
    assert len(came) <= DEFAULT.most
    assert [ref for ref in order if ref not in came] == [ref for ref, _ in ranked if ref not in came]
    assert order[: DEFAULT.first][: len(ranked)] == [ref for ref, _ in ranked[: DEFAULT.first]] or len(ranked) < 2
    own = dict(ranked)
    for at, each in enumerate(joined):
        if each.seed:
            assert each.seed in seeds_of(ranked)
            assert each.score < own[each.seed]
            assert own.get(each.ref, 0.0) < each.score
            stronger = {ref for ref, score in ranked if score >= each.score and ref not in came}
            assert stronger <= set(order[:at])
