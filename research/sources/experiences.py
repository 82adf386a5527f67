"""Experiences as a source: what was tried before and what came of it, on one of four axes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from research.experiences.intake import Choices, axis_of, choose, outcome_of
from research.experiences.records import KIND, Experience, FoundExperience
from research.models import Item, Question, Ref
from research.search.items import FoundItem, FoundItems, Ranking, Where
from research.sources.base import Retrieved
from research.sources.items import ItemsSource
from research.sources.records import in_words
from research.store.catalog.items import get_parent, item_metadata
from research.units import Structure, split, under

if TYPE_CHECKING:
    from research.store.catalog.reader import Reader


class ExperiencesSource(ItemsSource):
    """Searches one axis at a time: the items of that axis, and nothing of the others. Unless another is named, it is
    the full one."""

    name = "experiences"
    kind = KIND
    ranking = Ranking(vectors=1.0)  # who asks about an experience seldom has its words

    def find(self, reader: Reader, text: str, limit: int, *, where: Where | None = None) -> FoundItems:
        return super().find(reader, text, limit, where={"axis": "full", **(where or {})})

    def restriction(
        self,
        reader: Reader | None,
        choices: Choices,
        *,
        axis: str | None = "full",
        domain: str | None = None,
        strategy: str | None = None,
        outcome: str | None = None,
    ) -> Where:
        """What `find` takes. An axis, domain, strategy or outcome that there is not raises UsageError with those there
        are; what is in use is one, though the settings no longer name it. Without a reader nothing is."""
        where = {"axis": axis_of(axis or "full")}
        if outcome is not None:
            where["outcome_status"] = outcome_of(outcome)
        for name, given, known in (
            ("domain", domain, choices.domains),
            ("strategy", strategy, choices.strategies),
        ):
            if given is not None:
                asked = () if reader is None or given in known else item_metadata(reader, KIND)
                used = {str(metadata.get(name)) for _, metadata in asked}
                where[name] = choose(name, given, tuple(dict.fromkeys((*known, *sorted(used)))))
        return where

    def experiences(self, reader: Reader, found: FoundItems) -> list[FoundExperience]:
        """What was found, whole."""
        told: list[FoundExperience] = []
        for each in found.items:
            parent = get_parent(reader, KIND, each.item.parent)
            if parent is not None:
                experience = Experience.of_stored(parent.parent, parent.metadata)
                axis = str(each.item.metadata.get("axis"))
                told.append(FoundExperience(experience, axis, each.item.text, each.score, each.total, each.parts))
        return told

    def retrieve(self, reader: Reader, question: Question, limit: int) -> Retrieved:
        """With its parts named: a hypothesis that turned out to be wrong must not read as if it were so."""
        found = super().retrieve(reader, question, limit)
        parents = {item.ref.key: get_parent(reader, KIND, item.ref.key) for item in found.items}
        told = {key: Experience.of_stored(key, each.metadata) for key, each in parents.items() if each}
        words = {key: in_words(each, each.outcome) for key, each in told.items()}
        return replace(found, items=[told_experience(item, words.get(item.ref.key, item.text)) for item in found.items])

    def ref(self, found: FoundItem) -> Ref:
        return Ref(self.kind, found.item.parent)

    def item(self, found: FoundItem) -> Item:
        item = super().item(found)
        return replace(item, metadata={name: value for name, value in item.metadata.items() if name != "axis"})


def told_experience(item: Item, text: str) -> Item:
    """With what came of it under what was wanted and believed, as rows stand under a header: that is what answers."""
    end = max(0, text.find("\nOutcome: "))
    units = [unit._replace(kind="row", block=int(unit.start >= end)) for unit in split(text)]
    return replace(item, text=text, structure=Structure(text, units=under(units, end) if end else units))
