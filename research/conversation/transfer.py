"""Memories as JSON Lines, in and out: an object a line, as `Memory.to_dict` has it, as seeds 000 and 001 send it, or as
conversations are exported ({"id", "speaker", "text", "timestamp", "session"})."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from research.conversation.intake import checked, read_memory
from research.errors import UsageError
from research.memories import NewMemory

if TYPE_CHECKING:
    from research.index import Index
    from research.memories import Memory

LONGEST_LINE = 1 << 20  # bytes
_A_BATCH = 200
_MOST_FAILURES = 1_000  # that are kept; the others are counted


@dataclass(slots=True)
class Imported:
    """What came of a file of memories."""

    stored: int = 0
    joined: int = 0
    known: int = 0
    failed: int = 0
    failures: list[tuple[int, str]] = field(default_factory=list)  # line, and what is wrong with it

    def fail(self, line: int, reason: str) -> None:
        self.failed += 1
        if len(self.failures) < _MOST_FAILURES:
            self.failures.append((line, reason))

    def count(self, memories: Iterable[Memory]) -> None:
        for memory in memories:
            setattr(self, memory.outcome, getattr(self, memory.outcome) + 1)


def import_memories(
    index: Index, lines: Iterable[bytes], *, tenant: str = "", on_batch: Callable[[int], None] = lambda _: None
) -> Imported:
    """Remember what stands on the lines; a line that is wrong costs itself alone. The same file again changes nothing.
    `on_batch` hears how many lines are done."""
    done, batch = Imported(), list[tuple[int, NewMemory]]()
    number = 0
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            batch.append((number, _read(line)))
        except UsageError as error:
            done.fail(number, error.message)
        if len(batch) == _A_BATCH:
            _remember(index, batch, tenant, done)
            batch = []
            on_batch(number)
    _remember(index, batch, tenant, done)
    on_batch(number)
    return done


def export_memories(memories: Iterable[Memory]) -> Iterator[str]:
    """A line each, without its end. The tenant is left out: whoever imports them says whose they are."""
    for memory in memories:
        fields = {name: value for name, value in memory.to_dict().items() if name != "tenant"}
        yield json.dumps(fields, ensure_ascii=True)


def _read(line: bytes) -> NewMemory:
    if len(line) > LONGEST_LINE:
        raise UsageError(f"the line has {len(line):,} bytes, more than {LONGEST_LINE:,}")
    try:
        entry: Any = json.loads(line.decode().removeprefix("\ufeff"), parse_constant=_refuse)
    except UnicodeDecodeError:
        raise UsageError("not UTF-8") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"no valid JSON: {str(error)[:80]}") from None
    new = read_memory(entry)
    checked(new, datetime.now(UTC))
    return new


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _remember(index: Index, batch: Sequence[tuple[int, NewMemory]], tenant: str, done: Imported) -> None:
    if not batch:
        return
    try:
        done.count(index.remember_batch([new for _, new in batch], tenant=tenant))
    except UsageError:  # of one of them, as an id that is another memory's: then one by one
        for number, new in batch:
            try:
                done.count(index.remember_batch([new], tenant=tenant))
            except UsageError as error:
                done.fail(number, error.message)
