"""What an experience is found by: an item of the catalog for each axis that it has something to say on.

Four items and not one with four texts: so an axis has words, a length and vectors of its own, and to search it is to
search items whose `axis` it is. All four belong to the experience as their parent, come with it and go with it.
"""

from __future__ import annotations

from research.experiences.records import AXES, Experience
from research.store.catalog.items import NewItem

KIND = "experience"


def axis_items(experience: Experience) -> list[NewItem]:
    """None of one that is still open."""
    if experience.is_open:
        return []
    texts = {axis: axis_text(experience, axis) for axis in AXES}
    return [
        NewItem(
            key=f"{experience.id}#{axis}",
            title=experience.goal if axis == "full" else "",
            text=text,
            created_at=experience.closed_at,
            metadata={"axis": axis, **experience.metadata()},
            words=f"{experience.domain} {experience.strategy} {experience.outcome}" if axis == "full" else "",
        )
        for axis, text in texts.items()
        if text
    ]


def axis_text(experience: Experience, axis: str) -> str:
    """What an axis says of it; empty where it says nothing."""
    return "\n".join(told for told in axis_fields(experience, axis) if told)


def axis_fields(experience: Experience, axis: str) -> tuple[str, ...]:
    """The same in parts, in the experience's own words but for the strategy's name."""
    if axis == "surprise":
        return (experience.surprise,)
    if axis == "root_cause":
        return (experience.root_cause,)
    if axis == "strategy":
        return (
            f"{experience.strategy}, {experience.domain}, {experience.outcome}",
            experience.action,
            experience.outcome_result,
            experience.lesson,
        )
    return (
        experience.goal,
        experience.hypothesis,
        experience.action,
        experience.prediction,
        experience.outcome_result,
        experience.surprise,
        experience.root_cause,
        experience.lesson,
    )
