"""What may be remembered, checked: bounds, forms, times. And the forms it comes in: JSON Lines, payloads of the seeds.

Text is data. Nothing in it is looked at here but its length; what cannot be stored (half a surrogate pair, NUL) is
replaced. An object is as `Memory.to_dict` has it, as seeds 000 and 001 send it, or as conversations are exported
({"id", "speaker", "text", "timestamp", "session"}).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, BinaryIO

from research.errors import UsageError
from research.filters import read_time
from research.memories import DEFAULT_TYPE, NewMemory
from research.text import json_lines, kind_name, storable, stored_time

if TYPE_CHECKING:
    from research.index import Index
    from research.memories import Memory

LONGEST_TEXT = 20_000  # characters: some pages. A memory is a sentence or a few; a document is for `ctx ingest`
LONGEST_METADATA = 8_192  # characters of its JSON
LONGEST_NAME = 200  # of a tenant, a session, an id
_LONGEST_TAG = 100
_MOST_TAGS = 32
_DEEPEST = 8
_MOST_SOURCES = 1_000
LONGEST_LINE = 1 << 20  # bytes, of JSON Lines
_A_BATCH = 200
_MOST_FAILURES = 1_000  # that are kept; the others are counted

# Other names for the same: those of the seeds, and of conversations as they are exported.
_NAMES = {"session_id": "session", "persona_id": "persona", "timestamp": "created_at", "idempotency_key": "key"}
_SPEAKERS = ("speaker", "author", "role")  # in metadata
_FIELDS = frozenset(NewMemory.__slots__)
_NAMED = ("id", "type", "category", "namespace", "session", "persona", "key", "replaces")
# What a memory has that was stored before; the index works it out itself.
_OWN = frozenset(
    {"tenant", "tenant_id", "told_at", "last_used_at", "joined_to", "also", "superseded_by", "helped", "not_helped"}
)
_PREFIX = re.compile(r"(?P<name>[^\W\d_][\w.'’-]*(?: [^\W\d_][\w.'’-]*){0,2}):\s+\S")
_LASTS = re.compile(r"(?P<number>\d{1,6})\s*(?P<unit>s|m|h|d|w|seconds?|minutes?|hours?|days?|weeks?)", re.IGNORECASE)
_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")  # what a name cannot hold; joiners are part of some names
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def read_memory(given: Mapping[str, Any]) -> NewMemory:
    """A memory from a JSON object. Fields that nobody knows go into its metadata; wrong ones raise UsageError."""
    if not isinstance(given, Mapping):
        raise UsageError(f"a memory is an object, not {kind_name(given)}", hint='{"text": "…"}')
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    for name, value in given.items():
        known = _NAMES.get(name, name)
        if known in _FIELDS:
            if value is not None:
                fields[known] = value
        elif name not in _OWN:
            extra[str(name)] = value
    if "text" not in fields and "content" in extra:
        fields["text"] = extra.pop("content")
    if "text" not in fields:
        raise UsageError("a memory needs a text", hint='{"text": "…"}')
    metadata = fields.get("metadata", {})
    if not isinstance(metadata, Mapping):
        raise UsageError(f"metadata must be an object, not {kind_name(metadata)}")
    tags = fields.get("tags", ())
    if isinstance(tags, str) or not isinstance(tags, Sequence):
        raise UsageError(f"tags must be a list of texts, not {kind_name(tags)}")
    return NewMemory(**fields | {"metadata": {**extra, **metadata}, "tags": tuple(tags)})


def checked(new: NewMemory, now: datetime) -> NewMemory:
    """The same with every value as it is stored: times in UTC, names on one line. Raises UsageError for what cannot be.

    Without a time of its own it is told when its metadata says, as conversations are exported; else now.
    """
    metadata = _metadata(new.metadata)
    text = _text(new.text)
    names = {name: name_of(name, getattr(new, name)) for name in _NAMED}
    created = _time("created_at", new.created_at) if new.created_at else None
    created = created or read_time(metadata.get("timestamp") or metadata.get("created_at")) or now
    speaker = new.speaker or next((str(metadata[key]) for key in _SPEAKERS if isinstance(metadata.get(key), str)), "")
    if not speaker and names["session"] and (match := _PREFIX.match(text)):
        speaker = match["name"]
    return replace(
        new,
        **names | {"type": names["type"] or DEFAULT_TYPE},
        text=text,
        importance=share("importance", new.importance),
        tags=_tags(new.tags),
        speaker=name_of("speaker", speaker),
        metadata=metadata,
        created_at=stored_time(created),
        expires_at=stored_time(_time("expires_at", new.expires_at)) if new.expires_at else "",
    )


def _text(text: object) -> str:
    if not isinstance(text, str):
        raise UsageError(f"the text of a memory is text, not {kind_name(text)}")
    if len(text) > LONGEST_TEXT:
        raise UsageError(
            f"the text has {len(text):,} characters, and a memory at most {LONGEST_TEXT:,}",
            hint="remember what matters of it, or add the document itself: ctx ingest PATH",
        )
    plain = storable(text).strip()
    if not plain:
        raise UsageError("the text is empty", hint='ctx remember "Anna moved to Bonn"')
    return plain


def name_of(what: str, value: object) -> str:
    """One line: the name of a tenant or a session, an id, a kind."""
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise UsageError(f"{what} must be text, not {kind_name(value)}")
    plain = storable(value).strip()
    if len(plain) > LONGEST_NAME or _BREAKS.search(plain):
        raise UsageError(f"{what} must be one line of up to {LONGEST_NAME} characters")
    return plain


def _metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON object of bounded size, with nothing in it that JSON has not."""
    if not isinstance(metadata, Mapping):
        raise UsageError(f"metadata must be an object, not {kind_name(metadata)}")
    try:
        if _depth(metadata) > _DEEPEST:
            raise UsageError(f"metadata is nested more than {_DEEPEST} deep")
        written = storable(json.dumps(metadata, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"metadata is no JSON: {error}") from None
    if len(written) > LONGEST_METADATA:
        raise UsageError(f"metadata has {len(written):,} characters, and may have {LONGEST_METADATA:,}")
    read: dict[str, Any] = json.loads(written)
    return read


def sources_of(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """The ids of the memories that a summary says it was made from."""
    listed = metadata.get("sources")
    if not isinstance(listed, list):
        return ()
    return tuple(dict.fromkeys(each for each in listed[:_MOST_SOURCES] if isinstance(each, str) and each))


def expiry(said: str, now: datetime) -> datetime:
    """A time, or how long something lasts from now: "30d", "12 hours", "2027-01-31"."""
    if match := _LASTS.fullmatch(said.strip()):
        return now + timedelta(seconds=int(match["number"]) * _UNITS[match["unit"][0].lower()])
    found = read_time(said)
    if found is None:
        raise UsageError(f"{said[:60]!r} is no time", hint="say how long (30d, 12h) or when (2027-01-31)")
    return found


def _time(what: str, value: object) -> datetime:
    found = read_time(value)
    if found is None:
        raise UsageError(f"{what} is no time: {str(value)[:60]!r}", hint="write it as 2026-01-31T10:30:00Z")
    return found


def share(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise UsageError(f"{name} must be a number from 0 to 1, not {str(value)[:60]}")
    return float(value)


def _tags(tags: Sequence[object]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(name_of("a tag", tag) for tag in tags))
    if len(found) > _MOST_TAGS or any(not 0 < len(tag) <= _LONGEST_TAG for tag in found):
        raise UsageError(f"a memory has at most {_MOST_TAGS} tags, each of 1 to {_LONGEST_TAG} characters")
    return found


def _depth(value: object) -> int:
    if isinstance(value, Mapping):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list | tuple) else 0


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


def import_memories(index: Index, stream: BinaryIO, *, tenant: str = "") -> Imported:
    """Remember what stands on the lines; a line that is wrong costs itself alone. The same file again changes
    nothing."""
    done, batch = Imported(), list[tuple[int, NewMemory]]()
    for number, entry in json_lines(stream, LONGEST_LINE):
        try:
            if isinstance(entry, UsageError):
                raise entry
            new = read_memory(entry)
            checked(new, datetime.now(UTC))
            batch.append((number, new))
        except UsageError as error:
            done.fail(number, error.message)
        if len(batch) == _A_BATCH:
            _remember(index, batch, tenant, done)
            batch = []
    _remember(index, batch, tenant, done)
    return done


def export_memories(memories: Iterable[Memory]) -> Iterator[str]:
    """A line each, without its end. The tenant is left out: whoever imports them says whose they are."""
    for memory in memories:
        fields = {name: value for name, value in memory.to_dict().items() if name != "tenant"}
        yield json.dumps(fields, ensure_ascii=True)


def _remember(index: Index, batch: Sequence[tuple[int, NewMemory]], tenant: str, done: Imported) -> None:
    try:
        for memory in index.memories.remember_batch([new for _, new in batch], tenant=tenant):
            setattr(done, memory.outcome, getattr(done, memory.outcome) + 1)
    except UsageError as error:  # of one of them, as an id that is another memory's: then one by one
        if len(batch) == 1:
            done.fail(batch[0][0], error.message)
            return
        for each in batch:
            _remember(index, [each], tenant, done)
