"""record_experience: what an agent tried and what came of it, told for the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from research.experiences.intake import LONGEST_TEXT
from research.experiences.records import OUTCOMES, TIERS
from research.parameters import Parameter
from research.service.mcp.budget import Reply, TextIn
from research.service.mcp.catalogue import TEXT_PLACE, Tool

if TYPE_CHECKING:
    from research.index import Index


def record_experience(index: Index, *, text_in: TextIn = "content", **told: Any) -> Reply:
    """Durable when it returns. Experiences are the index's, whoever tells them."""
    told.pop("tenant", None)
    experience = index.record_experience(**{name: value for name, value in told.items() if value is not None})
    if experience.is_open:
        text = (
            f"Recorded, open, iteration {experience.iteration_count}: {experience.id}. When you know how it ended, call"
            f" record_experience with id={experience.id}, outcome and outcome_result."
        )
    else:
        text = f"Recorded, {experience.outcome}, {experience.confidence_tier}: {experience.id}."
        index.renew_values()
    fields = {
        "id": experience.id,
        "state": experience.state,
        "confidence_tier": experience.confidence_tier,
        "iteration_count": experience.iteration_count,
    }
    return Reply(text, fields)


def _text(name: str, words: str) -> Parameter:
    return Parameter(name, "text", words, most=LONGEST_TEXT)


RECORD_EXPERIENCE = Tool(
    "record_experience",
    "Record an experience",
    "Keeps what you try and what comes of it, for later work on the same index. Before you try something uncertain,"
    " tell goal, hypothesis, action and prediction; when you know, call again with the id, outcome and outcome_result,"
    " and what surprised you, why it was so, what to do next time. One that is over may be told in a single call. Only"
    " what really happened, in whole sentences that somebody else understands.",
    (
        Parameter("id", "text", "Of one that is open, to change it or tell its outcome.", most=64),
        _text("goal", "What is wanted."),
        _text("hypothesis", "What you believe. Another one for the same id is another iteration."),
        _text("action", "What you do about it."),
        _text("prediction", "What will happen if you are right."),
        Parameter("outcome", "text", "How it ended.", choices=OUTCOMES),
        _text("outcome_result", "What came of it, or why it was given up."),
        _text("surprise", "What nobody expected."),
        _text("root_cause", "Why it was so."),
        _text("lesson", "What worked, or would have."),
        _text(
            "domain",
            "debugging, refactoring, feature, testing, configuration, documentation, performance, security, integration"
            " or other.",
        ),
        _text(
            "strategy",
            "systematic-elimination, trial-and-error, research-first, divide-and-conquer, root-cause-analysis,"
            " copy-from-similar, check-assumptions, read-the-error, ask-user or other.",
        ),
        Parameter("confidence_tier", "text", "What it is worth. Left out: by outcome and iterations.", choices=TIERS),
        TEXT_PLACE,
    ),
    record_experience,
    {
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "note": {"type": "string"},
            "id": {"type": "string"},
            "state": {"type": "string", "enum": [*OUTCOMES, "open"]},
            "confidence_tier": {"type": "string"},
            "iteration_count": {"type": "integer"},
        },
        "required": ["id", "state", "confidence_tier", "iteration_count"],
    },
    read_only=False,
    needs="experiences",
)

EXPERIENCES = (RECORD_EXPERIENCE,)
