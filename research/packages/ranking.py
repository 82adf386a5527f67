"""Candidates, things that a retrieval brought or a request pinned, and their blended score.

A ref is looked up exactly as it is written, and a memory among those of the one tenant that asks: a ref that forges
another finds nothing. The score says how well a thing fits, how near it is in the graph, how current and how sound it
is, and whether it was of use before. Each part is 0 to 1, and stands with the source; the score is their weighted mean,
and half of it for a version that a newer one has taken the place of.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from research.filters import read_time
from research.models import SUPERSEDED, Item, Question, Ref
from research.packages.request import PARTS, Origin, ScoreParts
from research.search import FoundItem
from research.sources import ITEM_SOURCES, ItemsSource, memory_item, page_item
from research.store import (
    StoredItem,
    Uses,
)

if TYPE_CHECKING:
    from research.index import Index
    from research.store import Reader

TYPE_OF_KIND: Mapping[str, str] = {
    "page": "documents",
    "memory": "memories",
    "code": "code",
    "commit": "commits",
    "experience": "experiences",
    "value": "values",
}
"""Kind of a ref → type of context."""

_NUMBER = re.compile("[1-9][0-9]{0,8}")  # of a page: 007 and ٣ are no numbers of ours
PAGES = 4
"""Pages that a pinned document may stand for."""


@dataclass(slots=True)
class Candidate:
    """A thing before the budget. `origins`: which retrievals brought it."""

    item: Item
    origins: set[Origin] = field(default_factory=set)
    semantic: float = 0.0
    graph: float = 0.0
    superseded: bool = False
    pinned: bool = False
    expires_at: str = ""  # of a memory that is not kept for ever
    score: float = 0.0
    parts: ScoreParts = field(default_factory=ScoreParts)
    redacted: bool = False  # its text is what a redactor left
    text: bool = True  # there is any
    classification: str = ""

    def __post_init__(self) -> None:
        self.superseded = self.superseded or SUPERSEDED in self.item.labels

    @property
    def named(self) -> bool:
        """Whether it was asked for by its name or by what it is."""
        return self.pinned or "metadata" in self.origins

    @property
    def likely(self) -> float:
        """How likely it is to answer, by itself or by what it is near to."""
        return max(self.semantic, self.graph)

    @property
    def ref(self) -> str:
        return str(self.item.ref)


def item_sources(index: Index) -> dict[str, ItemsSource]:
    """Kind → the source of its items."""
    return {kind.kind: index.item_source(kind) for kind in ITEM_SOURCES.values()}


def pinned_refs(index: Index, reader: Reader, refs: Iterable[str], intent: str) -> dict[str, list[str]]:
    """Each pinned ref with the refs it stands for: of a document, the pages that fit the intent best, or its first."""
    found: dict[str, list[str]] = {}
    for text in dict.fromkeys(refs):
        ref = Ref.parse(text)
        found[text] = _pages_of(index, reader, ref, intent) if ref.kind == "document" else [text]
    return found


def load(index: Index, reader: Reader, refs: Sequence[str], tenant: str) -> dict[str, Candidate]:
    """Those of these refs that name something, under the refs as they were given; each with its text."""
    parsed = {text: Ref.parse(text) for text in dict.fromkeys(refs)}
    found = _pages(reader, {text: ref for text, ref in parsed.items() if ref.kind == "page"})
    found |= _memories(reader, {text: ref for text, ref in parsed.items() if ref.kind == "memory"}, tenant)
    sources = item_sources(index) if any(ref.kind not in ("page", "memory") for ref in parsed.values()) else {}
    for text, ref in parsed.items():
        if ref.kind in sources:
            stored = _stored(reader, ref)
            if stored is not None:
                item = sources[ref.kind].item(FoundItem(stored, 0.0, 0.0, {}))
                if str(item.ref) == text:
                    found[text] = Candidate(item)
    return found


def _pages(reader: Reader, refs: Mapping[str, Ref]) -> dict[str, Candidate]:
    """A document may be named by any id it has or had: its page is the one of today."""
    known: dict[str, str] = {}
    for key in dict.fromkeys(ref.key for ref in refs.values()):
        known.update((key, doc_id) for doc_id in reader.names.current_ids([key])[:1])
    wanted = {
        text: (known[ref.key], int(ref.part))
        for text, ref in refs.items()
        if ref.key in known and _NUMBER.fullmatch(ref.part)
    }
    ids = reader.pages.ids_at([f"{doc_id}:{page}" for doc_id, page in wanted.values()])
    stored = {
        (page.doc_id, page.page): page_item(page, structure) for page, structure in reader.pages.with_text(ids).values()
    }
    return {text: Candidate(stored[place]) for text, place in wanted.items() if place in stored}


def _pages_of(index: Index, reader: Reader, ref: Ref, intent: str) -> list[str]:
    ids = reader.names.current_ids([ref.key])[:1] if not ref.part else []
    if not ids:
        return []
    question = Question(intent, mode=index.settings.mode, documents=tuple(ids))
    fitting = [str(item.ref) for item in index.source.retrieve(reader, question, PAGES).items]
    return fitting or [str(Ref("page", ids[0], "1"))]


def _memories(reader: Reader, refs: Mapping[str, Ref], tenant: str) -> dict[str, Candidate]:
    ids = {text: text.partition(":")[2] for text in refs}
    numbers = reader.memories.numbers(tenant, ids.values())
    memories = reader.memories.get(tenant, list(numbers.values()))
    found = {}
    for text, name in ids.items():
        memory = memories.get(numbers.get(name, 0))
        if memory is not None and not memory.joined_to:
            found[text] = Candidate(memory_item(memory), expires_at=memory.expires_at)
    return found


def _stored(reader: Reader, ref: Ref) -> StoredItem | None:
    if ref.kind == "experience":
        parts = reader.items.all(ref.kind, parent=ref.key) if not ref.part else iter(())
        return next((each for each in parts if each.metadata.get("axis") == "full"), None)
    key = str(ref).partition(":")[2]
    return reader.items.find(ref.kind, key) or reader.items.find(ref.kind, f"{key}#")


_HALF_LIFE_DAYS = 365.0
_CURRENT = 0.5  # what anything current has at least, however old; a superseded thing has nothing
_SUPERSEDED = 0.5  # of its score: two versions of a page fit alike, and which comes first must not be chance
_OCR = 0.7
_SUSPICIOUS = 0.3
_TIERS = {"gold": 1.0, "silver": 0.85, "bronze": 0.7, "abandoned": 0.4}
_SHORT = 40  # characters below which a text says little by itself
_NOTHING_YET = Uses()


def fuse(answers: Iterable[Sequence[Candidate]]) -> list[Candidate]:
    """Each thing once, by ref: with all that brought it and the best of what they said of it."""
    found: dict[str, Candidate] = {}
    for candidates in answers:
        for each in candidates:
            known = found.get(each.ref)
            if known is None:
                found[each.ref] = each
                continue
            known.origins |= each.origins
            known.graph = max(known.graph, each.graph)
            known.superseded = known.superseded or each.superseded
            known.pinned = known.pinned or each.pinned
            known.expires_at = known.expires_at or each.expires_at
            if each.semantic > known.semantic:  # as the search has it: with its legs and its own score
                known.semantic, known.item = each.semantic, each.item
    return list(found.values())


def rank(
    candidates: Sequence[Candidate], weights: Mapping[str, float], uses: Mapping[str, Uses], now: datetime
) -> list[Candidate]:
    """Score candidates, and return the pinned ones first and as they were pinned, then by score; what is equal by ref,
    so that it is always the same."""
    total = sum(weights.values()) or 1.0
    for each in candidates:
        each.parts = ScoreParts(
            semantic=round(min(1.0, each.semantic), 4),
            graph=round(min(1.0, each.graph), 4),
            recency=round(recency(each, now), 4),
            quality=round(quality(each), 4),
            reuse=round(reuse(uses.get(each.ref, _NOTHING_YET)), 4),
        )
        score = sum(weights[name] * getattr(each.parts, name) for name in PARTS) / total
        each.score = round(score * (_SUPERSEDED if each.superseded else 1.0), 6)
    pinned = [each for each in candidates if each.pinned]
    rest = [each for each in candidates if not each.pinned]
    return [*pinned, *sorted(rest, key=lambda each: (-each.score, each.ref))]


def recency(candidate: Candidate, now: datetime) -> float:
    if candidate.superseded:
        return 0.0
    at = read_time(candidate.item.created_at)
    if at is None:
        return _CURRENT
    days = max(0.0, (now.astimezone(UTC) - at).total_seconds() / 86_400)
    return _CURRENT + (1.0 - _CURRENT) * math.exp2(-days / _HALF_LIFE_DAYS)


def quality(candidate: Candidate) -> float:
    """Text that was read from a picture, that may steer a model, or that is hardly there, is worth less."""
    item, found = candidate.item, 1.0
    if item.metadata.get("ocr"):
        found *= _OCR
    if item.signals:
        found *= _SUSPICIOUS
    tier = item.metadata.get("confidence_tier")
    if isinstance(tier, str):
        found *= _TIERS.get(tier, 1.0)
    length = len(item.text.strip())
    return found * min(1.0, length / _SHORT)


def reuse(uses: Uses) -> float:
    """Grows with what was said to be useful and, much less, with being chosen; what was of no use loses it."""
    told = uses.useful - uses.not_useful + 0.02 * min(uses.chosen, 50)
    return 0.0 if told <= 0 else 1.0 - math.exp(-told / 2.0)
