"""The premortem as seed 002 has it: its questions, its sections, its footer."""

from __future__ import annotations

import pytest

from research.errors import ContextAssemblyError
from tests.research.sources.holding import COUNTER, Holding, experience, premortem, value

AXES = ("full", "strategy", "surprise", "root_cause")


def held(*names: str, **more: object) -> Holding:
    """Each of these experiences on every axis, as an index has them."""
    found = [
        experience(name, 0.9 - 0.1 * n, axis=axis, goal=f"Goal of {name}", surprise="Odd", root_cause="A proxy", **more)
        for axis in AXES
        for n, name in enumerate(names)
    ]
    return Holding(experiences=found, values=[value()])


def test_the_questions_are_the_seeds() -> None:
    found = held("e1")
    premortem(found, "debugging", "read-the-error", limit=4)
    assert sorted(found.asked, key=str) == sorted(
        [
            (
                "experiences",
                {
                    "query": "failures and issues in debugging", "axis": "full", "domain": "debugging",
                    "strategy": None, "outcome": "falsified", "limit": 4,
                },
            ),
            (
                "experiences",
                {
                    "query": "outcomes using read-the-error strategy", "axis": "strategy", "domain": None,
                    "strategy": "read-the-error", "outcome": None, "limit": 4,
                },
            ),
            (
                "experiences",
                {
                    "query": "unexpected outcomes in debugging", "axis": "surprise", "domain": "debugging",
                    "strategy": None, "outcome": None, "limit": 4,
                },
            ),
            (
                "experiences",
                {
                    "query": "why hypotheses fail in debugging", "axis": "root_cause", "domain": "debugging",
                    "strategy": None, "outcome": None, "limit": 4,
                },
            ),
            ("values", {"query": "principles for debugging using read-the-error", "limit": 5}),
        ],
        key=str,
    )  # fmt: skip


def test_without_a_strategy_there_is_no_such_question() -> None:
    found = held("e1")
    context = premortem(found)
    assert [how["axis"] for name, how in found.asked if name == "experiences"] == ["full", "surprise", "root_cause"]
    assert ("values", {"query": "principles for debugging", "limit": 5}) in found.asked
    assert "Strategy Performance" not in context.markdown


def test_the_structure_is_the_seeds() -> None:
    def told(name: str) -> str:
        return (
            "**Experience**: debugging | read-the-error\n"
            f"- **Goal**: Goal of {name}\n"
            "- **Hypothesis**: The timeout is too short\n"
            "- **Action**: Doubled it\n"
            "- **Prediction**: Uploads go through\n"
            "- **Outcome**: falsified - They stop as before\n"
            "- **Surprise**: Odd"
        )

    context = premortem(held("e1", "e2", "e3", "e4"), "debugging", "read-the-error")
    assert context.markdown == (
        "# Premortem: debugging with read-the-error\n"
        "\n"
        f"## Common Failures\n{told('e1')}\n"
        "\n"
        f"## Strategy Performance\n{told('e2')}\n"
        "\n"
        f"## Unexpected Outcomes\n{told('e3')}\n"
        "\n"
        f"## Root Causes to Watch\n{told('e4')}\n- **Root cause**: A proxy\n"
        "\n"
        "## Relevant Principles\n"
        "**Value** (strategy, cluster size: 5):\nRead the error first.\n"
        "\n"
        "---\n"
        "*Based on 4 past experiences*"
    )
    assert context.token_count == COUNTER.count(context.markdown) <= 1500
    assert context.sources_used == {"experiences": 4, "values": 1}
    assert premortem(held("e1")).markdown.startswith("# Premortem: debugging\n\n## Common Failures\n")


def test_sections_take_turns_and_tell_an_experience_once() -> None:
    names = [f"e{n}" for n in range(9)]
    context = premortem(held(*names, action=" ".join(["slow"] * 30)), max_tokens=4000)
    shown = [item.metadata["id"] for item in context.items if item.source == "experience"]
    assert sorted(shown) == names
    assert "*Based on 9 past experiences*" in context.markdown
    parts = context.markdown.split("\n## ")[1:4]
    assert [part.count("**Experience**") for part in parts] == [3, 3, 3]
    found = held(*names)
    found.experiences = [each for each in found.experiences if each.axis == "full"]
    assert premortem(found, max_tokens=4000).markdown.count("**Experience**") == 9


def test_failures_of_a_strategy_come_first() -> None:
    found = held("e1")
    found.experiences = [
        experience("won", 0.6, axis="strategy", outcome_status="confirmed"),
        experience("lost", 0.55, axis="strategy", outcome_status="falsified"),
    ]
    context = premortem(found, "debugging", "read-the-error")
    assert [item.metadata["id"] for item in context.items if item.source == "experience"] == ["lost", "won"]


def test_an_axis_that_fails_is_named_and_the_rest_answers() -> None:
    found = held("e1")
    found.failing["surprise"] = RuntimeError("broken")
    context = premortem(found)
    assert "Unexpected Outcomes" not in context.markdown
    assert "## Common Failures" in context.markdown
    assert [each.name for each in context.coverage.sources if each.status == "down"] == ["experiences/surprise"]


def test_nothing_found_is_an_empty_context() -> None:
    assert premortem(Holding()).markdown == ""


@pytest.mark.parametrize("domain", ["", "  ", "x" * 101])
def test_a_domain_has_a_name(domain: str) -> None:
    found = held("e1")
    with pytest.raises(ContextAssemblyError):
        premortem(found, domain)
    assert found.asked == []


def test_the_budget_holds() -> None:
    for most in (1, 40, 90, 200, 377, 1500):
        context = premortem(held(*(f"e{n}" for n in range(9))), "debugging", "read-the-error", max_tokens=most)
        assert context.token_count == COUNTER.count(context.markdown) <= most
