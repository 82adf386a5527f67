from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from research.context.pipeline import deduplicate as deduplicate_items
from research.context.pipeline import rank
from research.contract import ContextBuilder, SearchEngine
from research.models import Item, Ref
from research.store import ChromaClient

RESULTS = st.lists(
    st.fixed_dictionaries(
        {
            "doc_id": st.sampled_from("abc"),
            "page": st.integers(1, 4),
            "score": st.floats(0, 1, allow_nan=False),
        }
    )
)


def deduplicate(samples: ChromaClient, results: list[dict[str, object]]) -> list[dict[str, object]]:
    return ContextBuilder(SearchEngine(samples), samples).deduplicate_results(results)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(results=RESULTS)
def test_each_page_once_with_its_best_score_in_order(samples: ChromaClient, results: list[dict[str, object]]) -> None:
    kept = deduplicate(samples, results)
    keys = [(r["doc_id"], r["page"]) for r in kept]
    assert len(keys) == len(set(keys))
    assert set(keys) == {(r["doc_id"], r["page"]) for r in results}
    scores = [r["score"] for r in kept]
    assert scores == sorted(scores, reverse=True)
    for result in kept:
        same = [r["score"] for r in results if (r["doc_id"], r["page"]) == (result["doc_id"], result["page"])]
        assert result["score"] == max(same)


def test_the_contracts_example(samples: ChromaClient) -> None:
    results = [
        {"doc_id": "abc", "page": 1, "score": 0.95},
        {"doc_id": "abc", "page": 1, "score": 0.90},
        {"doc_id": "def", "page": 2, "score": 0.85},
    ]
    assert deduplicate(samples, results) == [results[0], results[2]]


ITEMS = st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 1, allow_nan=False)))


@given(st.lists(ITEMS, max_size=3))
def test_items_of_several_sources_are_merged_by_score_and_stand_once(found: list[list[tuple[str, float]]]) -> None:
    sources = [
        [Item(Ref("page", key), "", "", score) for key, score in sorted(part, key=lambda entry: -entry[1])]
        for part in found
    ]
    kept = deduplicate_items(rank(sources))
    everything = [item for items in sources for item in items]
    assert {item.ref for item in kept} == {item.ref for item in everything}
    assert len({item.ref for item in kept}) == len(kept)
    assert [item.score for item in kept] == sorted((item.score for item in kept), reverse=True)
    for item in kept:
        assert item.score == max(other.score for other in everything if other.ref == item.ref)
