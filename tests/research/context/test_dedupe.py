from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from research.context.dedupe import deduplicate

RESULTS = st.lists(
    st.fixed_dictionaries(
        {
            "doc_id": st.sampled_from("abc"),
            "page": st.integers(1, 4),
            "score": st.floats(0, 1, allow_nan=False),
        }
    )
)


@given(RESULTS)
def test_each_page_once_with_its_best_score_in_order(results: list[dict[str, object]]) -> None:
    kept = deduplicate(results)
    keys = [(r["doc_id"], r["page"]) for r in kept]
    assert len(keys) == len(set(keys))
    assert set(keys) == {(r["doc_id"], r["page"]) for r in results}
    scores = [r["score"] for r in kept]
    assert scores == sorted(scores, reverse=True)
    for result in kept:
        same = [r["score"] for r in results if (r["doc_id"], r["page"]) == (result["doc_id"], result["page"])]
        assert result["score"] == max(same)


def test_the_contracts_example() -> None:
    results = [
        {"doc_id": "abc", "page": 1, "score": 0.95},
        {"doc_id": "abc", "page": 1, "score": 0.90},
        {"doc_id": "def", "page": 2, "score": 0.85},
    ]
    assert deduplicate(results) == [results[0], results[2]]
