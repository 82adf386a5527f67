"""Memories as a source: what was told before, of one tenant and of nobody else."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from research.errors import CtxError
from research.memories import Memory, Within
from research.models import SUPERSEDED, Item, LegScore, Question, Ref, Retrieved, SourceCoverage, labelled
from research.search import Ranked, View, Views, allowed, rank, read_question
from research.store import spoken_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from research.encoders import TextEncoder
    from research.store import Reader

EMBED_SECONDS = 1.0  # that a question may spend on memories without vectors; the next one goes on
_A_BATCH = 32
_MOST_WINDOWS = 4  # of a long memory that are embedded


@dataclass(frozen=True, slots=True)
class Embedded:
    """Vectors that were made for a question and are not stored yet."""

    tenant: str
    encoder: str
    numbers: Sequence[int]
    vectors: NDArray[np.float32]  # (n, dim)


@dataclass(frozen=True, slots=True)
class Found:
    """Memories with their ranks, best first."""

    ranked: list[tuple[int, Memory, Ranked]] = field(default_factory=list)  # number, memory, rank
    searched: int = 0
    without_vectors: int = 0
    notes: tuple[str, ...] = ()
    fresh: Embedded | None = None

    def newer(self, ranked: Ranked) -> str:
        """The id of the one of these that seems to tell it anew; empty without one."""
        return next((memory.id for number, memory, _ in self.ranked if number == ranked.newer), "")


class MemoriesSource:
    """Searches in memory, by words and by exact comparison of vectors. May be used by many threads."""

    name = "memories"

    def __init__(self, encoder: Callable[[Reader], TextEncoder]) -> None:
        self._encoder = encoder
        self.views = Views()

    def retrieve(self, reader: Reader, question: Question, limit: int) -> Retrieved:
        found = self.find(reader, question.tenant, question.text, limit, session=question.session)
        from research.sources.items import by_names  # not needed to recall

        reason = "; ".join(found.notes)
        status = SourceCoverage(self.name, "degraded" if reason else "ok", reason)
        ranked = ((memory_item(memory, each), found.newer(each)) for _, memory, each in found.ranked)
        told = [replace(item, metadata={**item.metadata, "newer": newer}) if newer else item for item, newer in ranked]
        items = by_names(question.wording, labelled(told, reader.masks.labels))
        return Retrieved(items, status, notes=found.notes, fresh=found.fresh)

    def find(
        self,
        reader: Reader,
        tenant: str,
        text: str,
        limit: int,
        *,
        within: Within | None = None,
        session: str = "",
        now: datetime | None = None,
    ) -> Found:
        """The best `limit` for a text. `session`: of what fits equally well, this one's first. Without an encoder that
        works the words answer alone, and a note tells."""
        at = now or datetime.now(UTC)
        encoder, notes = self._usable(reader)
        view = self.views.get(reader, tenant, encoder.name if encoder else "")
        if view is None:
            return Found()
        asking = read_question(view, text)
        vector, fresh = None, None
        try:
            if encoder is not None:
                vector = encoder.embed_query(asking.embedded)
                view, fresh = self._embed_missing(reader, view, encoder)
        except CtxError as error:  # at an address that does not answer
            vector, notes = None, (_words_only(error),)
        flags = allowed(view, within or Within(), at.timestamp())
        ranked = rank(view, asking, vector, flags, limit, text=text, now=at, session=session)
        memories = reader.memories.get(tenant, [int(view.columns.numbers[each.row]) for each in ranked])
        numbered = [(int(view.columns.numbers[each.row]), each) for each in ranked]
        told = [(number, memories[number], each) for number, each in numbered if number in memories]
        missing = 0 if vector is None else int(flags[view.without_vectors].sum())
        return Found(told, int(flags.sum()), missing, notes, fresh)

    def embed(self, reader: Reader, tenant: str, seconds: float) -> tuple[View | None, Embedded | None]:
        """Vectors for memories that have none, as many as can be made in this time."""
        encoder = self._encoder(reader)
        view = self.views.get(reader, tenant, encoder.name)
        return (None, None) if view is None else self._embed_missing(reader, view, encoder, seconds)

    def _usable(self, reader: Reader) -> tuple[TextEncoder | None, tuple[str, ...]]:
        try:
            return self._encoder(reader), ()
        except CtxError as error:
            return None, (_words_only(error),)

    def _embed_missing(
        self, reader: Reader, view: View, encoder: TextEncoder, seconds: float = EMBED_SECONDS
    ) -> tuple[View, Embedded | None]:
        import numpy as np

        if not len(view.without_vectors):
            return view, None
        until = time.monotonic() + seconds
        numbers: list[int] = []
        made: list[NDArray[np.float32]] = []
        waiting = reader.memories.pending_vectors(view.tenant, encoder.name, len(view.without_vectors))
        known = set(view.columns.numbers[view.without_vectors].tolist())
        waiting = [each for each in waiting if each[0] in known and (view.tenant, each[0]) not in reader.masks.memories]
        for start in range(0, len(waiting), _A_BATCH):
            part = waiting[start : start + _A_BATCH]
            made.append(embed_texts(encoder, [spoken_text(text, speaker) for _, speaker, text in part]))
            numbers += [number for number, _, _ in part]
            if time.monotonic() > until:
                break
        if not numbers:
            return view, None
        vectors = np.concatenate(made)
        view = view.with_vectors(numbers, vectors)
        self.views.keep(view, encoder.name)
        return view, Embedded(view.tenant, encoder.name, numbers, vectors)


def embed_texts(encoder: TextEncoder, texts: Sequence[str]) -> NDArray[np.float32]:
    """(n, dim), unit length. A text beyond the encoder's window is the mean of its first windows."""
    import numpy as np

    windows = [_windows(text, encoder) for text in texts]
    vectors = encoder.embed([window for each in windows for window in each])
    if len(vectors) == len(texts):
        return vectors
    ends = np.cumsum([len(each) for each in windows])
    means = np.stack([part.mean(axis=0) for part in np.split(vectors, ends[:-1])])
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    found: NDArray[np.float32] = (means / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return found


def _windows(text: str, encoder: TextEncoder) -> list[str]:
    """Parts that fit the encoder's window, cut between words."""
    room = encoder.max_tokens - 2  # special tokens
    if encoder.count_tokens(text) <= room:
        return [text]
    found, words, used = [], list[str](), 0
    for word in text.split():
        tokens = encoder.count_tokens(word)
        if words and used + tokens > room:
            found.append(" ".join(words))
            words, used = [], 0
            if len(found) == _MOST_WINDOWS:
                return found
        if tokens <= room:  # a word longer than a window means nothing
            words.append(word)
            used += tokens
    return [*found, " ".join(words)] if words or not found else found


def _words_only(error: CtxError) -> str:
    return f"memories are searched by their words only: {error.message}"


def memory_item(memory: Memory, ranked: Ranked | None = None) -> Item:
    """As the pipeline has it; without a rank nobody has asked for it yet."""
    from research.context import signals_of  # not needed to recall

    return Item(
        ref=Ref("memory", memory.id),
        title=memory.speaker or memory.type,
        text=memory.text,
        score=ranked.score if ranked else 0.0,
        raw_score=ranked.total if ranked else 0.0,
        legs={name: LegScore(None, share) for name, share in ranked.parts.items()} if ranked else {},
        created_at=memory.told_at,
        metadata={
            "type": memory.type,
            "category": memory.category,
            "importance": memory.importance,
            "session": memory.session,
            "namespace": memory.namespace,
            "persona": memory.persona,
            "speaker": memory.speaker,
            "superseded_by": memory.superseded_by,
            "expires_at": memory.expires_at,
        },
        labels=(SUPERSEDED,) if memory.superseded_by else (),
        signals=tuple(signals_of(memory.text, title=memory.speaker)),
    )
