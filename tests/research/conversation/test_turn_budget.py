"""The budget of a turn: the seed's example, what is always there, what is left out first, and that it holds."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from research.context import TokenCounter
from research.conversation.messages import _greedy, _knapsack
from research.errors import TurnTooLongError, UsageError
from tests.research.conversation.making import Memories, build, builder, memory, talk, turn

TOKENS = TokenCounter()


def _dots(text: str) -> int:
    """A counter for sums on paper: nothing costs anything but dots."""
    return text.count(".")


def test_the_example_of_seed_001() -> None:
    """4,000 tokens; 8 memories of 150; of ten messages the last eight, 2,750 tokens. The seed leaves out what messages
    4 to 7 cost; together they are 1,450."""
    costs = [180, 200, 250, 350, 350, 350, 400, 300, 350, 400]
    history = [{"role": "user", "content": f"message {number} {'.' * cost}"} for number, cost in enumerate(costs, 1)]
    memories = Memories(*(memory(f"{number} {'.' * 150}") for number in range(8)))
    made = builder(memories, _dots, message_overhead=0)
    context = build(made, turn("", history, system_prompt=""), 4000)
    assert [message["content"].split()[1] for message in context.history] == list(map(str, range(3, 11)))
    assert context.token_counts == {"system": 0, "history": 2750, "snippets": 1200, "user": 0, "overhead": 0}
    assert context.debug["total_tokens"] == 3950
    assert context.debug["history_count"] == 8


def test_the_parts_add_up_to_what_is_sent() -> None:
    made = builder(Memories(memory("Ana lives in Kiel."), memory("Ana has a dog.")), TOKENS.count)
    context = build(made, turn(history=talk(6)))
    counts = context.token_counts
    assert list(counts) == ["system", "history", "snippets", "user", "overhead"]
    said = sum(TOKENS.count(message["content"]) for message in context.messages)
    assert said == sum(counts.values()) - counts["overhead"]
    # as OpenAI's models count: three around each message, its role, one and its words for a name, three for the reply
    assert counts["overhead"] == 3 * 9 + 9 + 2 + 3
    assert context.prompt_tokens == sum(counts.values()) == context.debug["context_prompt_tokens"]
    assert "context_prompt_tokens " + f"{float(context.prompt_tokens)}" in made.metrics.render()


def test_what_a_message_costs_can_be_set() -> None:
    for overhead, expected in ((0, 0), (5, 15), (lambda message: len(message["role"]), 14)):
        context = build(builder(Memories(), message_overhead=overhead), turn(history=talk(1)))
        assert context.token_counts["overhead"] == expected


def test_memories_are_trimmed_and_then_the_history_gets_the_rest() -> None:
    memories = [memory(f"number{number} " + "word " * 18, 0.9 - number / 100) for number in range(8)]
    made = builder(Memories(*memories), message_overhead=0)
    context = build(made, turn("hello", talk(10), system_prompt="be kind"), 100)
    # 2 + 1 of our own, 2 for the heading, 21 for each memory: four of them, and eleven are left
    assert [snippet["text"].split()[0] for snippet in context.snippets] == ["number0", "number1", "number2", "number3"]
    assert [message["content"] for message in context.history] == [f"message {n}" for n in range(6, 11)]
    assert context.prompt_tokens <= 100


def test_a_small_memory_fits_where_a_better_one_did_not() -> None:
    memories = [memory("best " + "word " * 20, 0.9), memory("large " + "word " * 60, 0.8), memory("small", 0.7)]
    context = build(builder(Memories(*memories), message_overhead=0), turn("hello", system_prompt=""), 40)
    assert [snippet["text"].split()[0] for snippet in context.snippets] == ["best", "small"]
    assert next(message["content"] for message in context.messages if message.get("name")).count("[2] (") == 1


def test_a_knapsack_finds_what_is_worth_most_together() -> None:
    memories = [
        memory("one " + "word " * 26, 0.9),
        memory("two " + "word " * 14, 0.8),
        memory("six " + "word " * 14, 0.7),
    ]
    chosen = {}
    for budget in ("greedy", "knapsack"):
        made = builder(Memories(*memories), message_overhead=0, budget=budget)
        chosen[budget] = [s["text"][:3] for s in build(made, turn("hello", system_prompt=""), 38).snippets]
    assert chosen == {"greedy": ["one"], "knapsack": ["two", "six"]}


@given(
    items=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 40)), max_size=9),
    room=st.integers(0, 120),
)
def test_a_knapsack_is_exact_and_never_worse_than_greed(items: list[tuple[float, int]], room: int) -> None:
    values, weights = [value for value, _ in items], [weight for _, weight in items]
    subsets = [s for size in range(len(items) + 1) for s in combinations(range(len(items)), size)]
    best = max(sum(values[at] for at in s) for s in subsets if sum(weights[at] for at in s) <= room)
    for choose in (_knapsack, _greedy):
        chosen = choose(values, weights, room)
        assert chosen == sorted(set(chosen))
        assert sum(weights[at] for at in chosen) <= room
        assert sum(values[at] for at in chosen) <= best + 1e-9
    assert sum(values[at] for at in _knapsack(values, weights, room)) == pytest.approx(best)


def test_a_knapsack_with_too_many_sums_is_filled_by_greed() -> None:
    weights = [2**at for at in range(24)]  # each sum is another one, and the heavier the better
    assert _knapsack(list(map(float, weights)), weights, 2**24 - 2) == list(range(1, 24))


def test_a_message_alone_larger_than_the_budget_is_an_error_that_says_so() -> None:
    with pytest.raises(TurnTooLongError, match=r"take 1,0.. tokens or more, and the budget is 100") as raised:
        build(builder(Memories()), turn("word " * 1000), 100)
    assert raised.value.limit == 100 < raised.value.needed


@pytest.mark.parametrize("limit", [0, 1])
def test_budgets_of_nothing(limit: int) -> None:
    made = builder(Memories(memory("Ana lives in Kiel.")))
    with pytest.raises(TurnTooLongError):
        build(made, turn(history=talk(3)), limit)
    empty = builder(Memories(memory("Ana lives in Kiel.")), message_overhead=0)
    context = build(empty, turn("", talk(3), system_prompt=""), limit)
    assert [message["content"] for message in context.messages] == ["", ""]
    assert context.prompt_tokens == 0


@pytest.mark.parametrize("limit", [-1, None, "many", float("nan"), float("inf"), []])
def test_what_is_no_budget(limit: Any) -> None:
    with pytest.raises(UsageError, match="max_prompt_tokens"):
        build(builder(Memories()), turn(), limit)


def test_what_is_no_strategy() -> None:
    with pytest.raises(UsageError, match="magic"):
        builder(Memories(), budget="magic")


def test_a_text_of_megabytes_is_known_to_be_too_long_by_its_beginning() -> None:
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return TOKENS.count(text)

    history = [{"role": "user", "content": "word " * 2_000_000}, {"role": "user", "content": "short"}]
    context = build(builder(Memories(), count), turn(history=history))
    assert [message["content"] for message in context.history] == ["short"]
    assert max(counted) < 100_000


_MESSAGES = st.lists(
    st.dictionaries(st.sampled_from(["role", "content", "name", "x"]), st.text(max_size=40), max_size=3), max_size=50
)


@given(
    history=_MESSAGES,
    message=st.text(max_size=60),
    limit=st.integers(40, 400),
    memories=st.lists(st.text(), max_size=10),
)
def test_history_trimming_preserves_recent(history: list[Any], message: str, limit: int, memories: list[str]) -> None:
    """The seed's property: what is kept are the most recent messages, without a gap; system and message are there; the
    total is never above the limit; the parts add up."""
    made = builder(Memories(*map(memory, memories)), TOKENS.count, retrieval_timeout=30)
    try:
        context = build(made, turn(message, history), limit)
    except TurnTooLongError as error:
        assert error.limit == limit < error.needed
        return
    usable = [each for each in history if each.get("content", "").strip()]
    kept = [each["content"] for each in context.history]
    assert kept == [each["content"] for each in usable[len(usable) - len(kept) :]]
    assert len(kept) <= 20
    assert context.messages[0]["role"] == "system"
    assert context.messages[-1]["role"] == "user"
    assert context.messages[-1]["content"] == message
    assert context.messages[0]["content"] == context.system_prompt == "You are a helpful assistant."
    assert context.prompt_tokens <= limit
    said = sum(TOKENS.count(each["content"]) for each in context.messages)
    assert said + context.token_counts["overhead"] == context.prompt_tokens
