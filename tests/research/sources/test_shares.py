"""Shares of the budget: fair, nothing wasted, never exceeded. First as plain numbers, then with real items."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.context.fit import allotted, shares
from research.sources.records import CONTEXT_TYPES, SOURCES, FormattedContext
from research.sources.sections import WEIGHTS
from tests.pace import draws
from tests.research.sources.holding import (
    ALL,
    COUNTER,
    Holding,
    assembled,
    code,
    commit,
    document,
    experience,
    memory,
    value,
)

WORDS = """
    retry upload queue timeout socket server client proxy buffer cache token error branch merge table index vector
    cursor window thread signal memory stream packet header folder module parser schema field record budget worker
    ledger policy secret commit author review release deploy config option default margin widget layout render
""".split()  # noqa: SIM905


def test_the_seeds_weights() -> None:
    weighed = shares({name: WEIGHTS[name] for name in ALL}, 1800)
    assert weighed == {"memories": 200, "code": 400, "experiences": 600, "values": 200, "commits": 400}
    assert WEIGHTS["documents"] == 3


needs = st.dictionaries(st.sampled_from(CONTEXT_TYPES), st.integers(0, 5000), min_size=1)


@given(needs, st.integers(1, 5000))
def test_what_one_does_not_need_flows_on(wanted: dict[str, int], total: int) -> None:
    weights = {name: WEIGHTS[name] for name in wanted}
    given_out = allotted(weights, wanted, total)
    assert sum(given_out.values()) == pytest.approx(min(total, sum(wanted.values())))
    fair = shares(weights, total)
    for name, need in wanted.items():
        assert given_out[name] <= need + 1e-6
        assert given_out[name] >= min(need, fair[name]) - 1e-6
    short = [name for name in wanted if given_out[name] < wanted[name] - 1e-6]
    each = {given_out[name] / weights[name] for name in short}  # whoever gets less than it needs gets it by weight
    assert max(each, default=0) - min(each, default=0) < 1e-6


def text(maker: random.Random, words: int) -> str:
    return " ".join(maker.choices(WORDS, k=words)) + f" {maker.getrandbits(60):x}."


def rich(seed: int, *, count: int, words: tuple[int, int], without: str = "") -> Holding:
    """So many items of each kind, of lengths between these, none like another."""
    maker = random.Random(seed)

    def told() -> str:
        return text(maker, maker.randint(*words))

    scores = [0.9 - 0.8 * number / count for number in range(count)]
    found = Holding(
        [memory(f"m{n}", told(), score) for n, score in enumerate(scores)],
        [code(f"f{n}", score, docstring=told()) for n, score in enumerate(scores)],
        [experience(f"e{n}", score, goal=told(), action=told()) for n, score in enumerate(scores)],
        [value(f"v{n}", told(), score) for n, score in enumerate(scores)],
        [commit(f"{n:040x}", told(), score, files_changed=(f"other/{n}.py",)) for n, score in enumerate(scores)],
        [document(told(), page=n + 1, score=score) for n, score in enumerate(scores)],
    )
    if without:
        setattr(found, without, ())
    return found


def used_tokens(context: FormattedContext) -> dict[str, int]:
    types = {source: name for name, source in SOURCES.items()}
    found = dict.fromkeys(CONTEXT_TYPES, 0)
    for item in context.items:
        found[types[item.source]] += COUNTER.count(f"{item.content}\n\n")
    return found


@draws(20)
@given(st.integers(0, 10_000), st.integers(900, 4000), st.sampled_from([ALL, list(CONTEXT_TYPES), ALL[:3]]))
def test_with_all_sources_rich_each_is_near_its_share(seed: int, budget: int, types: list[str]) -> None:
    found = rich(seed, count=40, words=(5, 60))
    context = assembled(found, types, limit=40, max_tokens=budget)
    assert context.token_count == COUNTER.count(context.markdown) <= budget
    used = used_tokens(context)
    for name, share in shares({name: WEIGHTS[name] for name in types}, budget).items():
        largest = max(COUNTER.count(item.content) for item in context.items if item.source == SOURCES[name])
        assert abs(used[name] - share) <= largest + 40, name  # some tokens are the headings'


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("types", [ALL, list(CONTEXT_TYPES)])
def test_within_five_percent_at_20_000_tokens(seed: int, types: list[str]) -> None:
    found = rich(seed, count=400, words=(5, 60))
    context = assembled(found, types, limit=400, max_tokens=20_000)
    assert 19_800 <= context.token_count <= 20_000
    used = used_tokens(context)
    for name, share in shares({name: WEIGHTS[name] for name in types}, 20_000).items():
        assert abs(used[name] - share) <= 0.05 * share, name


@pytest.mark.parametrize("empty", ALL)
def test_with_one_empty_nothing_is_wasted(empty: str) -> None:
    rest = [name for name in ALL if name != empty]
    context = assembled(rich(1, count=40, words=(5, 30), without=empty), ALL, limit=40, max_tokens=1500)
    alone = assembled(rich(1, count=40, words=(5, 30)), rest, limit=40, max_tokens=1500)
    assert context.markdown == alone.markdown  # as if it had not been asked for
    assert context.token_count > 1350


def test_what_poor_sources_leave_goes_to_rich_ones() -> None:
    found = rich(1, count=60, words=(5, 30))
    found.memories, found.values, found.commits = found.memories[:1], found.values[:1], ()
    context = assembled(found, ALL, limit=60, max_tokens=3000)
    assert context.sources_used["memories"] == context.sources_used["values"] == 1
    assert context.token_count > 2750
    used = used_tokens(context)
    assert used["experiences"] == pytest.approx(1.5 * used["code"], rel=0.25)  # as 3 to 2


@draws(60)
@given(st.integers(0, 10_000), st.integers(1, 3000), st.integers(1, 12), st.integers(1, 300))
def test_the_budget_is_never_exceeded(seed: int, budget: int, count: int, longest: int) -> None:
    context = assembled(rich(seed, count=count, words=(1, longest)), list(CONTEXT_TYPES), max_tokens=budget)
    assert context.token_count == COUNTER.count(context.markdown) <= budget
    assert not context.limit_exceeded
    assert bool(context.items) == bool(context.markdown)
    if budget >= 150:
        assert context.items


def test_a_small_budget_is_for_few_sources_with_something_to_say() -> None:
    context = assembled(rich(3, count=10, words=(20, 30)), list(CONTEXT_TYPES), max_tokens=120)
    assert 1 <= len(context.items) <= 3
    assert all(len(item.content) > 60 for item in context.items)


def test_no_item_is_more_than_a_quarter_of_its_sources_share() -> None:
    long = text(random.Random(1), 1500)
    context = assembled(Holding([memory("m1", long)]), ["memories"], max_tokens=2000)
    [item] = context.items
    assert item.truncated
    assert 450 < COUNTER.count(item.content) <= 500
    shared = assembled(rich(1, count=30, words=(400, 500)), ALL, limit=30, max_tokens=2000)
    for item in shared.items:
        share = {"memory": 222, "value": 222, "code": 444, "commit": 444, "experience": 667}[item.source]
        assert COUNTER.count(item.content) <= share / 4
    assert shared.token_count > 1700
