"""What was told, under a gate: memories, experiences, values and turns of sessions, whose texts stand in fields of
their own. Each is as it was, has its texts masked or emptied, or is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from research.experiences.records import Experience, FoundExperience, FoundValue, Value
    from research.governance.access import Action, Ruling
    from research.governance.gate import Gate
    from research.memories import Memory, Recalled
    from research.sessions import AskedTurn, CitedPage
    from research.store.catalog.catalog import Catalog
    from research.store.catalog.reader import Reader

T = TypeVar("T")

_AT_ONCE = 200  # memories that are decided about together
# What is told in an experience, in words.
_TOLD = ("goal", "hypothesis", "action", "prediction", "outcome_result", "surprise", "root_cause", "lesson")


class ToldRecords:
    """The part of `WaysOut` that knows of records which are no items."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def _names(self, ruling: Ruling, *names: str) -> tuple[str, ...]:
        """What a redacted thing is called, with what is found in it masked; empty where that fails."""
        return self.gate.redact_text(replace(ruling, text=True), *names) or ("",) * len(names)

    def rulings(
        self, reader: Reader, refs: Iterable[str], purpose: str, *, action: Action = "read"
    ) -> dict[str, Ruling]:
        """What is decided about each, on record."""
        wanted = list(dict.fromkeys(refs))
        decision = self.gate.decide(reader, wanted, action=action)
        self.gate.record(decision, purpose)
        return {ruling.ref: ruling for ruling in decision.rulings}

    def records(
        self,
        reader: Reader,
        records: Sequence[T],
        purpose: str,
        *,
        ref: Callable[[T], str],
        texts: Callable[[T], tuple[str, ...]],
        with_texts: Callable[[T, tuple[str, ...]], T],
    ) -> list[T]:
        """Records that are no items (memories, experiences, values): with their texts masked, or emptied where only the
        reference may be seen."""
        ruled = self.rulings(reader, map(ref, records), purpose)

        def shown(record: T, ruling: Ruling) -> T:
            if ruling.effect == "allow":
                return record
            own = texts(record)
            safe = self.gate.redact_text(ruling, *own)
            return with_texts(record, safe if safe is not None else ("",) * len(own))

        return [shown(each, ruled[ref(each)]) for each in records if ruled[ref(each)].effect != "deny"]

    def turns(self, reader: Reader, turns: Sequence[AskedTurn]) -> list[AskedTurn]:
        """Turns of a session without what they quote of pages that may not be read as they are now."""
        ruled = self.rulings(reader, [cited.ref for turn in turns for cited in turn.sources], "session")

        def known(cited: CitedPage) -> bool:
            return ruled[cited.ref].effect != "deny"

        def quoting(cited: CitedPage) -> CitedPage:
            if ruled[cited.ref].effect == "allow":
                return cited
            [filename] = self._names(ruled[cited.ref], cited.filename)
            return replace(cited, quotes=(), filename=filename)

        def shown(turn: AskedTurn) -> AskedTurn:
            sources = tuple(quoting(cited) for cited in turn.sources if known(cited))
            if sources == turn.sources:
                return turn
            # What a model wrote, and what was searched for, may be words of a page.
            return replace(turn, sources=sources, answer="", searched=turn.question)

        return [shown(turn) for turn in turns]

    def memories(self, reader: Reader, memories: Sequence[Memory], purpose: str = "memories") -> list[Memory]:
        return self.records(
            reader,
            memories,
            purpose,
            ref=lambda memory: f"memory:{memory.id}",
            texts=lambda memory: (memory.text, memory.speaker, memory.category),
            with_texts=lambda memory, safe: replace(
                memory, text=safe[0], speaker=safe[1], category=safe[2], metadata={}, key=""
            ),
        )

    def recalled(self, reader: Reader, recalled: Sequence[Recalled]) -> list[Recalled]:
        seen = {memory.id: memory for memory in self.memories(reader, [each.memory for each in recalled], "recall")}
        return [replace(each, memory=seen[each.memory.id]) for each in recalled if each.memory.id in seen]

    def each_memory(self, catalog: Callable[[], Catalog], memories: Iterator[Memory]) -> Iterator[Memory]:
        """The same for many, some at a time."""
        while some := list(islice(memories, _AT_ONCE)):
            with catalog().snapshot() as reader:
                seen = self.memories(reader, some)
            yield from seen

    def experiences(
        self, reader: Reader, experiences: Sequence[Experience], purpose: str = "experiences"
    ) -> list[Experience]:
        return self.records(
            reader,
            experiences,
            purpose,
            ref=lambda told: f"experience:{told.id}",
            texts=lambda told: tuple(str(getattr(told, name)) for name in _TOLD),
            with_texts=_told_as,
        )

    def found_experiences(self, reader: Reader, found: Sequence[FoundExperience]) -> list[FoundExperience]:
        unlike = {each.experience.id: each.experience for each in found}
        seen = {told.id: told for told in self.experiences(reader, list(unlike.values()), "search")}
        kept = []
        for each in found:
            told = seen.get(each.experience.id)
            if told is not None:
                text = each.text if told is each.experience else ""  # it stands in one of the fields, too
                kept.append(replace(each, experience=told, text=text))
        return kept

    def values(self, reader: Reader, values: Sequence[Value], purpose: str = "values") -> list[Value]:
        return self.records(
            reader,
            values,
            purpose,
            ref=lambda value: f"value:{value.id}",
            texts=lambda value: (value.text,),
            with_texts=lambda value, safe: replace(value, text=safe[0]),
        )

    def found_values(self, reader: Reader, found: Sequence[FoundValue]) -> list[FoundValue]:
        seen = {value.id: value for value in self.values(reader, [each.value for each in found], "search")}
        return [replace(each, value=seen[each.value.id]) for each in found if each.value.id in seen]


def _told_as(told: Experience, texts: tuple[str, ...]) -> Experience:
    fields: dict[str, Any] = dict(zip(_TOLD, texts, strict=True))
    return replace(told, **fields)
