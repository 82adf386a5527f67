"""record_experience: what an agent tried and what came of it, told for the next one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from research.experiences.intake import LONGEST_TEXT
from research.experiences.records import DOMAINS, OUTCOMES, STRATEGIES, TIERS
from research.parameters import Parameter
from research.service.mcp.budget import Reply, TextIn
from research.service.mcp.catalogue import TEXT_PLACE, Tool, output_of

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


_TEXTS = {
    "goal": "What is wanted.",
    "hypothesis": "What you believe.",
    "action": "What you do about it.",
    "prediction": "What will happen if you are right.",
    "outcome_result": "What came of it.",
    "surprise": "What nobody expected.",
    "root_cause": "Why it was so.",
    "lesson": "What worked, or would have.",
    "domain": f"{', '.join(DOMAINS)}.",
    "strategy": f"{', '.join(STRATEGIES)}.",
}

RECORD_EXPERIENCE = Tool(
    "record_experience",
    "Record an experience",
    "Keeps what you try and what comes of it. Before something uncertain tell goal, hypothesis, action, prediction;"
    " when you know, call again with the id, outcome and outcome_result, and what surprised you. Only what happened.",
    (
        Parameter("id", "text", "Of one that is open.", most=64),
        *(Parameter(name, "text", words, most=LONGEST_TEXT) for name, words in _TEXTS.items()),
        Parameter("outcome", "text", "How it ended.", choices=OUTCOMES),
        Parameter("confidence_tier", "text", "Left out: by outcome.", choices=TIERS),
        TEXT_PLACE,
    ),
    record_experience,
    output_of(id=str, state={*OUTCOMES, "open"}, confidence_tier=str, iteration_count=int),
    read_only=False,
    needs="experiences",
)

EXPERIENCES = (RECORD_EXPERIENCE,)
