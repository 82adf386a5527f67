"""The parts of a score, and how candidates of several origins become one list."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from research.context import TokenCounter, fit_items
from research.models import Item, Ref
from research.packages.builder import PackageItems
from research.packages.ranking import Candidate, fuse, quality, rank, recency, reuse
from research.packages.retrieval import answer_of
from research.parallel import Outcome
from research.search import with_passages
from research.store import Uses

NOW = datetime(2026, 6, 1, tzinfo=UTC)
WEIGHTS = {"semantic": 1.0, "graph": 0.2, "recency": 0.1, "quality": 0.1, "reuse": 0.1}
LONG = "A sentence that is long enough to say something by itself."


def candidate(name: str, *, text: str = LONG, at: datetime = NOW, **more: object) -> Candidate:
    facts = {"confidence_tier": more.pop("tier")} if "tier" in more else {}
    facts |= {"ocr": more.pop("ocr")} if "ocr" in more else {}
    signals = more.pop("signals", ())
    item = Item(
        Ref("memory", name),
        name,
        text,
        0.5,
        created_at=at.isoformat(),
        metadata=facts,
        signals=tuple(signals),  # type: ignore[arg-type]
    )
    return Candidate(item, **more)  # type: ignore[arg-type]


def test_candidates_of_all_origins_are_one_by_ref() -> None:
    found = fuse(
        [
            [candidate("a", origins={"vector"}, semantic=0.6), candidate("b", origins={"vector"}, semantic=0.1)],
            [candidate("a", origins={"graph"}, graph=0.4), candidate("c", origins={"graph"}, graph=0.2)],
            [candidate("a", origins={"metadata"}, superseded=True)],
        ]
    )
    assert [each.ref for each in found] == ["memory:a", "memory:b", "memory:c"]
    assert (found[0].origins, found[0].semantic, found[0].graph) == ({"vector", "graph", "metadata"}, 0.6, 0.4)
    assert found[0].superseded


def test_each_signal_moves_the_score_as_the_seed_says() -> None:
    plain = {"semantic": 0.4}
    better = [
        (candidate("x", semantic=0.5), candidate("x", **plain)),
        (candidate("x", graph=0.5, **plain), candidate("x", **plain)),
        (candidate("x", **plain), candidate("x", at=NOW - timedelta(days=900), **plain)),
        (candidate("x", at=NOW - timedelta(days=9000), **plain), candidate("x", superseded=True, **plain)),
        (candidate("x", **plain), candidate("x", ocr=True, **plain)),
        (candidate("x", **plain), candidate("x", signals=("order",), **plain)),
        (candidate("x", **plain), candidate("x", text="…", **plain)),
        (candidate("x", tier="gold", **plain), candidate("x", tier="bronze", **plain)),
    ]
    for more, less in better:
        [high], [low] = rank([more], WEIGHTS, {}, NOW), rank([less], WEIGHTS, {}, NOW)
        assert high.score > low.score
    [unused] = rank([candidate("x", **plain)], WEIGHTS, {}, NOW)
    [used] = rank([candidate("x", **plain)], WEIGHTS, {"memory:x": Uses(3, 1, 0)}, NOW)
    assert used.score > unused.score
    assert reuse(Uses(50, 1, 3)) < reuse(Uses(1, 1, 0))
    assert reuse(Uses(10**9, 0, 0)) <= 0.5, "to be chosen is no proof"


@given(
    st.lists(
        st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans(), st.integers(-10_000, 10_000), st.booleans()),
        max_size=20,
    )
)
def test_scores_are_shares_and_pinned_ones_come_first(given: list[tuple[float, float, bool, int, bool]]) -> None:
    made = [
        candidate(str(n), semantic=fit, graph=near, pinned=pinned, at=NOW - timedelta(days=days), superseded=old)
        for n, (fit, near, pinned, days, old) in enumerate(given)
    ]
    ranked = rank(made, WEIGHTS, {}, NOW)
    assert len(ranked) == len(made)
    for each in ranked:
        assert 0.0 <= each.score <= 1.0
        assert all(0.0 <= part <= 1.0 for part in each.parts.model_dump().values())
    pins = [each.pinned for each in ranked]
    assert pins == sorted(pins, reverse=True)
    rest = [each.score for each in ranked if not each.pinned]
    assert rest == sorted(rest, reverse=True)
    assert all(0.0 <= part(each) <= 1.0 for each in made for part in (quality, lambda e: recency(e, NOW)))


TEXTS = st.text(st.sampled_from("ab cd. ef\n- gh | ij # […] [Document 1: x, Page 2] ünïcode 漢字\t"), max_size=600)


@given(texts=st.lists(TEXTS, max_size=6), budget=st.integers(1, 300), passages=st.booleans())
def test_whatever_the_texts_are_the_budget_holds_exactly(texts: list[str], budget: int, passages: bool) -> None:
    counter = TokenCounter()
    items = [candidate(str(number), text=text).item for number, text in enumerate(texts)]
    fitted = fit_items(
        [with_passages("ab cd", each) if passages else each for each in items], budget, PackageItems(), counter
    )
    assert fitted.tokens == counter.count(fitted.text) <= budget
    assert sum(fitted.costs) == fitted.tokens
    assert len(fitted.items) + len(fitted.dropped) == len(items)
    for number, item in enumerate(fitted.items, start=1):
        assert f"[Memory {number}: " in fitted.text
        assert (f"(the whole is {item.ref})" in fitted.text) == item.cut


def test_a_retrieval_tells_nothing_of_what_its_error_quotes() -> None:
    answer = answer_of("x", Outcome(error=ValueError("the secret text of a page")))
    assert (answer.status, answer.reason) == ("down", "ValueError")
