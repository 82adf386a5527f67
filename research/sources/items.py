"""Code, commits, values and experiences as sources: what they share, and what the items of each say."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from research.models import Item, LegScore, Question, Ref, Retrieved, SourceCoverage, labelled
from research.records import CodeTree, RepositoryInfo
from research.search import FoundItem, FoundItems, ItemSearch, Ranking, Where
from research.sources.records import in_words
from research.store import (
    StoredItem,
    WordWeights,
)
from research.units import Structure, split, under

if TYPE_CHECKING:
    from research.encoders import TextEncoder
    from research.experiences import Choices, FoundExperience, FoundValue
    from research.store import Reader


class ItemsSource:
    """A source over the items of one kind. A subclass names itself and the kind, and says what an item looks like."""

    name = ""
    kind = ""
    ranking: Ranking | None = None

    def __init__(self, encoder: Callable[[Reader], TextEncoder]) -> None:
        self.search = ItemSearch(self.kind, encoder, self.ranking)

    def retrieve(self, reader: Reader, question: Question, limit: int) -> Retrieved:
        found = self.find(reader, question.wording, limit, where=question.where)
        reason = "; ".join(found.notes)
        status = SourceCoverage(self.name, "degraded" if reason else "ok", reason)
        items = by_names(question.wording, labelled([self.item(each) for each in found.items], reader.masks.labels))
        return Retrieved(items, status, notes=tuple(found.notes), fresh=found.fresh)

    def find(self, reader: Reader, text: str, limit: int, *, where: Where | None = None) -> FoundItems:
        """The same with the rows themselves, and restricted to metadata."""
        return self.search.find(reader, text, limit, where=where)

    def ref(self, found: FoundItem) -> Ref:
        return Ref(self.kind, found.item.key)

    def item(self, found: FoundItem) -> Item:
        """As the pipeline has it."""
        from research.context import signals_of  # not needed to search

        stored = found.item
        plain = {name: value for name, value in stored.metadata.items() if isinstance(value, (str, int, float, list))}
        return Item(
            ref=self.ref(found),
            title=stored.title,
            text=stored.text,
            score=found.score,
            raw_score=found.total,
            legs={name: LegScore(None, share) for name, share in found.parts.items()},
            created_at=stored.created_at,
            metadata=plain,
            signals=tuple(signals_of(stored.text, title=stored.title)),
        )


def by_names(wording: str, items: Sequence[Item]) -> list[Item]:
    """The items, best first, each with its odds for what it has of the names in a question: what does not know them
    speaks of something else. Abbreviations count as words do, for everything about code has some. How sure pages are
    knows of names already."""
    from research.answer import names_share

    share_of, told = names_share(wording), []
    for item in items:
        share = share_of(f"{item.title}\n{item.ref}\n{item.text}")
        told.append(replace(item, score=item.score * share / (1.0 - item.score * (1.0 - share))))
    return sorted(told, key=lambda item: -item.score)


# Measured on docstrings of packages as questions (tests/bench/code.py, RETRIEVAL.md), where it lies flat around these
# numbers: the first sentence of a function's docstring, which is not indexed then, finds the function.
RANKING = Ranking(
    words=WordWeights(title=4.0, body=1.0, words=2.0),
    k1=1.0,
    b=0.6,
    vectors=1.2,
    heading=0.5,
    title=0.2,
    curve="code",
)
_ASKS_FOR_TESTS = re.compile(r"\b(?:unit|ge)?test(?:s|ed|et|ing|cases?)?\b|\bspecs?\b|\bfixtures?\b", re.I)


def trees_of(reader: Reader) -> list[CodeTree]:
    """By name."""
    counts = reader.items.count_by_parent(CodeSource.kind)
    found: dict[str, list[int]] = {}
    for parent in reader.items.parents(CodeSource.kind):
        if counts[parent.parent]:
            found.setdefault(str(parent.metadata.get("root", "")), []).append(counts[parent.parent])
    return [CodeTree(root, len(units), sum(units)) for root, units in sorted(found.items())]


class CodeSource(ItemsSource):
    name = "code"
    kind = "code"
    ranking = RANKING

    def find(self, reader: Reader, text: str, limit: int, *, where: Where | None = None) -> FoundItems:
        """Tests stand behind the code that they test, unless a question speaks of tests."""
        return self.search.find(reader, text, limit, where=where, priors=_ASKS_FOR_TESTS.search(text) is None)

    def item(self, found: FoundItem) -> Item:
        return replace(super().item(found), title=str(found.item.metadata["qualified_name"]))

    def ref(self, found: FoundItem) -> Ref:
        """`code:<path>#<qualified name>`; what stands outside of all definitions has the file's own."""
        return Ref("code", found.item.parent, found.item.key[len(found.item.parent) + 1 :])

    def get(self, reader: Reader, ref: str) -> StoredItem | None:
        """By a ref as it is told, or by the end of one: `code:src/dates.py#parse`, if only one piece ends so."""
        key = ref.removeprefix(f"{self.kind}:")
        found = reader.items.find(self.kind, key)
        if found is None:
            ending = reader.items.find_ending(self.kind, f"/{key.lstrip('/')}", 2)
            found = ending[0] if len(ending) == 1 else None
        return found


def repositories_of(reader: Reader) -> list[RepositoryInfo]:
    """By name."""
    return [RepositoryInfo(name, count) for name, count in reader.items.count_by_parent(CommitsSource.kind).items()]


class CommitsSource(ItemsSource):
    """A commit is found by its message, its first line above all, by the paths it touched, the functions its hunks lie
    in, and the words of its lines."""

    name = "commits"
    kind = "commit"
    ranking = Ranking(vectors=0.3, curve="commits")

    def item(self, found: FoundItem) -> Item:
        """With the folder that its files are named from."""
        item = super().item(found)
        return replace(item, metadata={**item.metadata, "repository": found.item.parent})


class ValuesSource(ItemsSource):
    name = "values"
    kind = "value"
    ranking = Ranking(vectors=1.0)  # and scores as experiences have

    def values(self, found: FoundItems) -> list[FoundValue]:
        """What was found, whole."""
        from research.experiences import FoundValue, value_of

        return [FoundValue(value_of(each.item), each.score, each.total, each.parts) for each in found.items]


class ExperiencesSource(ItemsSource):
    """Searches one axis at a time: the items of that axis, and nothing of the others. Unless another is named, it is
    the full one."""

    name = "experiences"
    kind = "experience"
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
        from research.experiences import axis_of, choose, outcome_of

        where = {"axis": axis_of(axis or "full")}
        if outcome is not None:
            where["outcome_status"] = outcome_of(outcome)
        for name, given, known in (
            ("domain", domain, choices.domains),
            ("strategy", strategy, choices.strategies),
        ):
            if given is not None:
                asked = () if reader is None or given in known else reader.items.metadata(self.kind)
                used = {str(metadata.get(name)) for _, metadata in asked}
                where[name] = choose(name, given, tuple(dict.fromkeys((*known, *sorted(used)))))
        return where

    def experiences(self, reader: Reader, found: FoundItems) -> list[FoundExperience]:
        """What was found, whole."""
        from research.experiences import Experience, FoundExperience

        told: list[FoundExperience] = []
        for each in found.items:
            parent = reader.items.parent(self.kind, each.item.parent)
            if parent is not None:
                experience = Experience.of_stored(parent.parent, parent.metadata)
                axis = str(each.item.metadata.get("axis"))
                told.append(FoundExperience(experience, axis, each.item.text, each.score, each.total, each.parts))
        return told

    def retrieve(self, reader: Reader, question: Question, limit: int) -> Retrieved:
        """With its parts named: a hypothesis that turned out to be wrong must not read as if it were so."""
        found = super().retrieve(reader, question, limit)
        if not found.items:
            return found
        from research.experiences import Experience

        parents = {item.ref.key: reader.items.parent(self.kind, item.ref.key) for item in found.items}
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


ITEM_SOURCES: Mapping[str, type[ItemsSource]] = {
    kind.name: kind for kind in (CodeSource, CommitsSource, ExperiencesSource, ValuesSource)
}
"""Type of context → the source of its items."""
