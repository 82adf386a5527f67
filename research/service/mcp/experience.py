"""record_experience: what an agent tried and what came of it, told for the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from research.experiences import LONGEST_TEXT, OUTCOMES
from research.parameters import Parameter
from research.service.mcp.budget import Reply
from research.service.mcp.catalogue import Tool, output_of

if TYPE_CHECKING:
    from research.index import Index


def record_experience(index: Index, **told: Any) -> Reply:
    """Durable when it returns. Experiences are the index's, whoever tells them."""
    told.pop("tenant", None)
    experience = index.experiences.record(**{name: value for name, value in told.items() if value is not None})
    if experience.is_open:
        text = (
            f"Recorded, open, iteration {experience.iteration_count}: {experience.id}. When you know how it ended, call"
            f" record_experience with id={experience.id}, outcome and outcome_result."
        )
    else:
        text = f"Recorded, {experience.outcome}, {experience.confidence_tier}: {experience.id}."
        index.experiences.renew_values()
    fields = {
        "id": experience.id,
        "state": experience.state,
        "confidence_tier": experience.confidence_tier,
        "iteration_count": experience.iteration_count,
    }
    return Reply(text, fields)


_TEXTS = {
    **dict.fromkeys(("goal", "hypothesis", "action", "prediction", "outcome_result", "surprise", "root_cause"), ""),
    "lesson": "What worked, or would have",
    "domain": "Such as debugging, feature, testing",
    "strategy": "Such as read-the-error",
}

RECORD_EXPERIENCE = Tool(
    "record_experience",
    "Record an experience",
    "Keeps what you try and what comes of it. Before something uncertain tell goal, hypothesis, action, prediction;"
    " when you know, call again with the id, outcome and outcome_result. Only what happened.",
    (
        Parameter("id", "text", "Of one that is open", most=64),
        *(Parameter(name, "text", words, most=LONGEST_TEXT) for name, words in _TEXTS.items()),
        Parameter("outcome", "text", "", choices=OUTCOMES),
    ),
    record_experience,
    output_of(id=str, state={*OUTCOMES, "open"}, confidence_tier=str, iteration_count=int),
    read_only=False,
    needs="experiences",
)

EXPERIENCES = (RECORD_EXPERIENCE,)
