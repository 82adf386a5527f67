"""The experiences of an index: started, updated, closed, listed, removed, taken over from JSON Lines. Each is a short
write, durable when it returns.

A record is kept as the parent of its items. What it was when it was read is written with it, so of two who close the
same experience at once one is told that it is closed. A line that cannot be read costs itself alone, and is told by its
number.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

from research.errors import BusyError, CtxError, NothingFoundError, UsageError
from research.experiences.intake import Choices, bounded, choose, closed, digest, id_by_content, new_experience
from research.experiences.intake import read_fields as read
from research.experiences.records import (
    KIND,
    OPEN,
    OUTCOMES,
    Experience,
    Imported,
    ImportedLines,
    LineProblem,
    Removed,
    axis_items,
)
from research.store import ItemParent, ParentItems
from research.text import json_lines, stored_time

if TYPE_CHECKING:
    from research.store import Catalog

_A_WRITE = 50  # experiences of one transaction
_TRIES = 5  # where others change the same one meanwhile
_LEAST_PREFIX = 4  # characters of an id that may stand for all of it
_MOST_NAMED = 5  # that an error lists
_BECAME = ("added", "changed", "known")

LONGEST_LINE = 1 << 19  # bytes; an experience has at most an eighth of it
MOST_PROBLEMS = 50  # that are told; the others are counted


class Experiences:
    """What an index has experienced. May be used by many threads."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        exists: Callable[[], bool],
        create: Callable[[], None],
        choices: Choices,
    ) -> None:
        """`create` makes the index where there is none: something may be tried before any document is added."""
        self._catalog = catalog
        self._exists = exists
        self._create = create
        self.choices = choices

    def start(self, given: Mapping[str, Any]) -> Experience:
        """A new one, closed at once if it comes with an outcome. Raises UsageError for an id that is taken."""
        experience = new_experience(read(given, self.choices), uuid.uuid4().hex[:12], datetime.now(UTC))
        self._create()
        if not self._put([(experience, "")]):
            hint = f"see it with: ctx experience show {experience.id}"
            raise UsageError(f"there is an experience {experience.id} already", hint=hint)
        return experience

    def update(self, id: str, given: Mapping[str, Any]) -> Experience:
        """Say more or something else of one that is open. Another hypothesis is another iteration."""
        fields = read(given, self.choices)
        for name in ("outcome", "outcome_result", "confidence_tier", "closed_at"):
            if name in fields:
                hint = f"ctx experience close {id} --outcome …"
                raise UsageError(f"{name} is told when an experience is closed", hint=hint)
        if not fields.keys() - {"id"}:
            hint = "name what changed: --hypothesis, --action, --surprise …"
            raise UsageError("nothing was told to update", hint=hint)

        def change(before: Experience) -> Experience:
            again = fields.get("hypothesis", before.hypothesis) != before.hypothesis
            count = fields.get("iteration_count", before.iteration_count + again)
            return bounded(replace(before, **{**fields, "iteration_count": count}))

        return self._change(id, change)

    def close(self, id: str, given: Mapping[str, Any]) -> Experience:
        """Tell the outcome of one that is open; from then on it is found. Raises UsageError if it is closed already."""
        fields = read(given, self.choices)
        if "outcome" not in fields:
            raise UsageError("an experience is closed with an outcome", hint=f"one of: {', '.join(OUTCOMES)}")
        return self._change(id, lambda before: closed(replace(before, **fields), datetime.now(UTC)))

    def record(self, given: Mapping[str, Any]) -> Experience:
        """Whatever is told of one: a new one, open or closed; or, by the id of one that is open, what changed, or how
        it ended."""
        fields = read(given, self.choices)
        id = fields.get("id")
        if id is None or not any(each.parent == id for each in self._all()):
            return self.start(fields)
        return self.close(id, fields) if "outcome" in fields else self.update(id, fields)

    def put(self, given: Iterable[Mapping[str, Any]]) -> Imported:
        """Take over records, by their ids: what is there already and says the same, or was changed later, stays."""
        return self.take([self.read(each) for each in given])

    def take(self, told: Sequence[tuple[Experience, Mapping[str, Any]]]) -> Imported:
        """Take over records that were read."""
        became: dict[str, str] = {}
        if told:
            self._create()
        for start in range(0, len(told), _A_WRITE):
            some = {experience.id: (experience, fields) for experience, fields in told[start : start + _A_WRITE]}
            for _ in range(_TRIES):
                if self._put(self._news(some, became)):
                    break
            else:
                raise _changing()
        added, changed, known = ([id for id, each in became.items() if each == what] for what in _BECAME)
        return Imported(added, changed, known)

    def read(self, given: Mapping[str, Any]) -> tuple[Experience, Mapping[str, Any]]:
        """A record that somebody else kept, and which of its fields were told. Raises UsageError."""
        fields = read(given, self.choices)
        return new_experience(fields, id_by_content(fields), datetime.now(UTC)), fields

    def get(self, id: str) -> Experience:
        """By its id, or by the beginning of it where that means one alone. Raises NothingFoundError."""
        return _of(self._find(id))

    def listed(
        self,
        *,
        domain: str | None = None,
        strategy: str | None = None,
        outcome: str | None = None,
        limit: int | None = None,
    ) -> list[Experience]:
        """Those that a restriction leaves, the newest first. `outcome` may be "open"."""
        state = outcome if outcome is None else choose("outcome", outcome, (*OUTCOMES, OPEN))
        found = [_of(parent) for parent in self._all()]
        wanted = {"state": state}
        for name, given, choices in (
            ("domain", domain, self.choices.domains),
            ("strategy", strategy, self.choices.strategies),
        ):
            if given is not None:  # what is in use is a choice, though the settings no longer name it
                used = sorted({getattr(each, name) for each in found})
                wanted[name] = choose(name, given, tuple(dict.fromkeys((*choices, *used))))
        chosen = [each for each in found if all(value in (None, getattr(each, name)) for name, value in wanted.items())]
        chosen.sort(key=lambda each: (each.started_at, each.id), reverse=True)
        return chosen[:limit]

    def remove(self, ids: Sequence[str]) -> Removed:
        """Gone from every table, and from the values that they were part of. Raises NothingFoundError for an id that is
        not there, before any is removed."""
        if not ids:
            raise UsageError("no experience was named", hint="see them with: ctx experience list")
        found = list(dict.fromkeys(self._find(id).parent for id in ids))
        return Removed(*self._catalog().items.remove_experiences(found))

    def _change(self, id: str, change: Callable[[Experience], Experience]) -> Experience:
        """What an open one becomes, written if it still is what was read."""
        for _ in range(_TRIES):
            parent = self._find(id)
            before = _of(parent)
            if not before.is_open:
                raise UsageError(
                    f"the experience {before.id} is closed already: {before.outcome}",
                    hint="start another with: ctx experience start",
                )
            after = replace(change(before), id=before.id, updated_at=stored_time(datetime.now(UTC)))
            if self._put([(after, parent.stamp)]):
                return after
        raise _changing()

    def _put(self, changes: Sequence[tuple[Experience, str]]) -> bool:
        """Whether all were still what they were (the stamp of each; empty: not there) and are written."""
        parents = [
            ParentItems(each.id, digest(each.to_dict()), axis_items(each), each.to_dict(), before=before)
            for each, before in changes
        ]
        return not self._catalog().items.put_parents(KIND, parents, short=True).outdated

    def _news(
        self, told: Mapping[str, tuple[Experience, Mapping[str, Any]]], became: dict[str, str]
    ) -> list[tuple[Experience, str]]:
        """What is to be written of these, with the stamp of what it stands in for; and what each becomes."""
        with self._catalog().snapshot() as reader:
            parents = {id: reader.items.parent(KIND, id) for id in told}
        news: list[tuple[Experience, str]] = []
        for id, (experience, fields) in told.items():
            parent = parents[id]
            if parent is None:
                became[id] = "added"
                news.append((experience, ""))
                continue
            known = _of(parent)
            after = _as_known(experience, fields, known)
            # One that is open never stands in for one that is closed, nor what is older for what is newer.
            older = "updated_at" in fields and after.updated_at <= known.updated_at
            if digest(after.to_dict()) == parent.stamp:
                became.setdefault(id, "known")  # or this has just written it
            elif older or (after.is_open and not known.is_open):
                became[id] = "known"
            else:
                became[id] = "changed"
                news.append((after, parent.stamp))
        return news

    def _all(self) -> list[ItemParent]:
        if not self._exists():
            return []
        with self._catalog().snapshot() as reader:
            return reader.items.parents(KIND)

    def _find(self, id: str) -> ItemParent:
        given = id.strip() if isinstance(id, str) else ""
        if given and self._exists():
            with self._catalog().snapshot() as reader:
                found = reader.items.parent(KIND, given)
            if found is not None:
                return found
        alike = [each for each in self._all() if each.parent.startswith(given)]
        if len(given) < _LEAST_PREFIX or not alike:
            raise NothingFoundError(f"there is no experience {given[:80]!r}", hint="see them with: ctx experience list")
        if len(alike) > 1:
            named = ", ".join(each.parent for each in alike[:_MOST_NAMED])
            raise UsageError(f"{given!r} means {len(alike)} experiences", hint=f"say more of its id: {named}")
        return alike[0]


def _as_known(new: Experience, told: Mapping[str, Any], known: Experience) -> Experience:
    """With the times of the one that is there, where none were told."""
    times = {name: getattr(known, name) for name in ("started_at", "updated_at", "closed_at") if name not in told}
    if new.outcome and not times.get("closed_at", "-"):
        times.pop("closed_at")
    return replace(new, **times)


def _of(parent: ItemParent) -> Experience:
    return Experience.of_stored(parent.parent, parent.metadata)


def _changing() -> BusyError:
    return BusyError("the experience is being changed by somebody else", hint="run the same command again")


def import_lines(experiences: Experiences, stream: BinaryIO) -> ImportedLines:
    """Take over what can be, some at a time."""
    done = Imported([], [], [])
    problems: list[LineProblem] = []
    failed, still_open = 0, 0
    waiting: list[tuple[Experience, Mapping[str, Any]]] = []

    def take() -> None:
        taken = experiences.take(waiting)
        for name in _BECAME:
            getattr(done, name).extend(getattr(taken, name))
        waiting.clear()

    for number, record in json_lines(stream, LONGEST_LINE):
        try:
            if isinstance(record, CtxError):
                raise record
            waiting.append(experiences.read(record))
        except CtxError as error:
            failed += 1
            if len(problems) < MOST_PROBLEMS:
                problems.append(LineProblem(number, error.message, error.hint))
            continue
        still_open += waiting[-1][0].is_open
        if len(waiting) == _A_WRITE:
            take()
    take()
    return ImportedLines(done, failed, tuple(problems), still_open)
