"""The embedded memory of an index: telling, recalling, feedback, forgetting. It needs no server.

What is told is durable when `remember` returns. Vectors may follow: a question embeds what has none, within its time.
It never waits to write them, and what they show to be the same: what cannot be written now, because an ingest is
writing, is tried again with the next.

Whether two memories say the same is decided cautiously: what is joined wrongly is lost, what stays apart is found
twice. Equal are texts that differ in case, punctuation, articles and contractions alone (`digest`). Near are those
whose vectors are close and of which each says all that the other does (`say_the_same`): the same names, numbers and
dates, as often "no", the same persons, at the same time.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
import unicodedata
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from research.conversation.intake import checked, name_of, share, sources_of
from research.errors import BusyError, CtxError, NothingFoundError, UsageError
from research.memories import TOP_K, Forgotten, Memory, NewMemory, Recall, Recalled, Within
from research.store import Told, memory_writes, spoken_text, words_of
from research.text import storable, stored_time

if TYPE_CHECKING:
    from research.answer import Reading
    from research.sources import Embedded, MemoriesSource
    from research.store import Catalog, Reader, Writer

_USED_SECONDS = 60.0  # after which it is written what was recalled
_WAIT = 0.1  # seconds for whoever writes at this moment
_LONGEST_COMPARED = 1_000  # characters of what is compared word by word
_MOST_CLOSE = 5  # memories that a new one is compared with


class _Later:
    """What the questions to one open index leave to be written. May be used by many threads."""

    def __init__(self, catalog: Callable[[], Catalog], source: Callable[[], MemoriesSource]) -> None:
        self._catalog = catalog
        self._source = source
        self._turn = threading.Lock()
        self._used: dict[str, dict[int, str]] = {}  # tenant → number → when
        self._used_since = time.monotonic()
        self._embedded: list[Embedded] = []

    def note(self, tenant: str, used: Sequence[int], embedded: Embedded | None) -> None:
        """Memories were used, or embedded. Vectors are written at once if that is possible, the rest once a minute."""
        with self._turn:
            self._used.setdefault(tenant, {}).update(dict.fromkeys(used, stored_time(datetime.now(UTC))))
            if embedded is not None:
                self._embedded.append(embedded)
            due = embedded is not None or time.monotonic() - self._used_since > _USED_SECONDS
        if due:
            with suppress(CtxError):  # busy, or a folder that may only be read
                self.write()

    def take_used(self, tenant: str) -> dict[int, str]:
        """For whoever writes memories of the tenant anyway."""
        with self._turn:
            return self._used.pop(tenant, {})

    def let_go(self, tenant: str) -> None:
        """Of what is held of a tenant."""
        with self._turn:
            self._used.pop(tenant, None)
            self._embedded = [each for each in self._embedded if each.tenant != tenant]

    def write(self) -> None:
        """All of it, in a short write. Raises BusyError if somebody else is writing; then it is kept."""
        with self._turn:
            used, self._used = self._used, {}
            embedded, self._embedded = self._embedded, []
            self._used_since = time.monotonic()
        if not embedded and not any(used.values()):
            return
        same = [(each, self._same_as_before(each)) for each in embedded]
        try:
            with self._catalog().short_write(wait=_WAIT) as connection:
                for tenant, numbers in used.items():
                    connection.memories.note_used(tenant, numbers)
                for each, pairs in same:
                    connection.memories.write_vectors(each.tenant, each.encoder, each.numbers, each.vectors)
                    for number, to in pairs:
                        connection.memories.join(each.tenant, number, to)
        except BusyError:
            with self._turn:
                self._embedded = embedded + self._embedded
                for tenant, numbers in used.items():
                    self._used[tenant] = numbers | self._used.get(tenant, {})
            raise

    def _same_as_before(self, embedded: Embedded) -> list[tuple[int, int]]:
        """Which of the new memories say what another says already: (number, the older one's)."""
        with self._catalog().snapshot() as reader:
            view = self._source().views.get(reader, embedded.tenant, embedded.encoder)
            if view is None:
                return []
            pairs = view.close_pairs(embedded.numbers, embedded.vectors, CLOSE, _MOST_CLOSE)
            meant = sorted({number for pair in pairs for number in pair})
            known = reader.memories.get(embedded.tenant, meant)
        found: dict[int, int] = {}
        for number, to in pairs:
            if number not in found and number in known and to in known and _same(known[number], known[to]):
                found[number] = to
        return list(found.items())


def _same(one: Memory, other: Memory) -> bool:
    if any(each.expires_at or len(each.text) > _LONGEST_COMPARED for each in (one, other)):
        return False
    return say_the_same(spoken_text(one.text, one.speaker), spoken_text(other.text, other.speaker))


POOL = 10  # memories among which recency decides, if it does; all of them would be ordered by date
_A_WRITE = 200  # memories of one transaction
_MOST_TOP_K = 1_000
_LONGEST_QUERY = 20_000


class Memories:
    """What an index remembers, by tenant. May be used by many threads."""

    def __init__(
        self,
        catalog: Callable[[], Catalog],
        source: Callable[[], MemoriesSource],
        *,
        exists: Callable[[], bool],
        create: Callable[[], None],
    ) -> None:
        """`create` makes the index where there is none: something may be told before any document is added."""
        self._catalog = catalog
        self._source = source
        self._exists = exists
        self._create = create
        self._later = _Later(catalog, source)

    def remember(self, new: Iterable[NewMemory], tenant: str = "") -> list[Memory]:
        """Tell these, in order. What is given back is durable; vectors follow with the next question. Some are stored
        and some not only if something is wrong with the index: what is wrong with a memory is said before any is."""
        owner, now = name_of("tenant", tenant), datetime.now(UTC)
        told = [_told(checked(each, now)) for each in new]
        if not told:
            return []
        self._create()
        memories: list[Memory] = []
        for start in range(0, len(told), _A_WRITE):
            with self._catalog().short_write() as connection:
                self._upkeep(connection, owner, now)
                numbered = connection.memories.tell(owner, told[start : start + _A_WRITE])
                found = connection.memories.get(owner, list(dict.fromkeys(number for number, _ in numbered)))
            memories += [replace(found[number], outcome=outcome) for number, outcome in numbered]
        return memories

    def recall(
        self,
        query: str,
        *,
        tenant: str = "",
        top_k: int = TOP_K,
        within: Within | None = None,
        threshold: float = 0.0,
        near_session: str = "",
        salience: bool = False,
        now: datetime | None = None,
    ) -> Recall:
        """The memories of a tenant that most likely answer. `near_session`: of what fits equally well, those of this
        session first. With `salience` the best are ordered by score and recency."""
        started, owner = time.perf_counter(), name_of("tenant", tenant)
        limit = _count("top_k", top_k, _MOST_TOP_K)
        text = storable(query).strip()[:_LONGEST_QUERY]
        if not text or not limit or not self._exists():
            return Recall(query, [])
        at = _utc(now)
        wanted = max(limit, POOL) if salience else limit
        with self._catalog().snapshot() as reader:
            found = self._source().find(reader, owner, text, wanted, within=within, session=near_session, now=at)
        recalled = [
            Recalled(memory, each.score, each.total, each.parts, newer=found.newer(each))
            for _, memory, each in found.ranked
        ]
        if salience:
            recalled = _by_salience(recalled, at)
        recalled = [each for each in recalled if each.score >= threshold][:limit]
        kept = {each.memory.id for each in recalled}
        self._later.note(owner, [number for number, memory, _ in found.ranked if memory.id in kept], found.fresh)
        seconds = time.perf_counter() - started
        return Recall(query, recalled, found.searched, found.without_vectors, found.notes, seconds)

    def get(self, memory_id: str, tenant: str = "", *, as_told: bool = False) -> Memory:
        """By its id, or any that was joined to it; `as_told`: that one itself. Raises NothingFoundError, also for one
        that has expired."""
        owner = name_of("tenant", tenant)
        with self._catalog().snapshot() as reader:
            memory = _memory(reader, owner, memory_id)
            if memory is not None and memory.joined_to and not as_told:
                memory = _memory(reader, owner, memory.joined_to)
        if memory is None or (memory.expires_at and memory.expires_at <= stored_time(datetime.now(UTC))):
            raise _no_memory(memory_id)
        return memory

    def listed(
        self, tenant: str = "", within: Within | None = None, *, limit: int | None = None, newest: bool = True
    ) -> Iterator[Memory]:
        """All that a restriction leaves, the newest first or last; without what has expired."""
        owner, now = name_of("tenant", tenant), stored_time(datetime.now(UTC))
        with self._catalog().snapshot() as reader:
            yield from reader.memories.select(owner, within or Within(), now=now, limit=limit, newest=newest)

    def feedback(self, memory_id: str, helped: bool, *, tenant: str = "", score: float = 0.0) -> Memory:
        """Whether a memory helped; `score` is that it was recalled with. It counts for whatever it is joined to."""
        memory, owner = self.get(memory_id, tenant), name_of("tenant", tenant)
        with self._catalog().short_write() as connection:
            number = connection.memories.numbers(owner, [memory.id]).get(memory.id)
            if number is None:  # forgotten meanwhile
                raise _no_memory(memory_id)
            at = stored_time(datetime.now(UTC))
            connection.memories.give_feedback(owner, number, helped=helped, score=share("score", score), at=at)
        return self.get(memory.id, tenant)

    def forget(self, *ids: str, tenant: str = "", session: str | None = None, everything: bool = False) -> Forgotten:
        """Memories by id, those of a session, or all of a tenant: with what was made from them, from every table. One
        that others are joined to leaves its place to them. Raises NothingFoundError for an id that is not there."""
        owner = name_of("tenant", tenant)
        if not ids and session is None and not everything:
            raise UsageError("nothing was named to be forgotten", hint="name ids, a session, or everything")
        gone: list[str] = []
        made: list[str] = []
        if ids:
            with self._catalog().short_write(erase=True) as connection:
                known = connection.memories.numbers(owner, ids)
                missing = [each for each in ids if each not in known]
                if missing:
                    raise _no_memory(missing[0])
                _forget(connection, owner, list(known.values()), gone, made)
        if session is not None or everything:
            among = Within(session=None if everything else session)
            left = True
            while left:
                with self._catalog().short_write(erase=True) as connection:
                    numbers = connection.memories.chosen(owner, among, memory_writes.A_STEP)
                    left = bool(numbers)
                    if numbers:
                        _forget(connection, owner, numbers, gone, made)
        self._later.let_go(owner)
        self._source().views.drop(owner)
        self._catalog().shrink_log()
        return Forgotten(tuple(gone), tuple(made))

    def maintain(self, tenant: str | None = None, *, seconds: float = 10.0) -> int:
        """Remove what has expired, embed what has no vector, join what says the same: of one tenant or all, for about
        as long. How many memories still wait for a vector."""
        with self._catalog().snapshot() as reader:
            owners = reader.memories.tenants() if tenant is None else [name_of("tenant", tenant)]
        until, waiting = time.monotonic() + seconds, 0
        for owner in owners:
            with self._catalog().short_write() as connection:
                self._upkeep(connection, owner, datetime.now(UTC), all_of_it=True)
            waiting += self._embed(owner, until)
        return waiting

    def keep_vectors(self, tenant: str, embedded: Embedded) -> None:
        """Vectors that a question made: written at once if that is possible."""
        self._later.note(name_of("tenant", tenant), (), embedded)

    def close(self) -> None:
        """Write what waits to be, if that is possible at once."""
        with suppress(CtxError):
            self._later.write()

    def _embed(self, owner: str, until: float) -> int:
        """How many are left."""
        while True:
            with self._catalog().snapshot() as reader:
                view, fresh = self._source().embed(reader, owner, max(0.0, min(1.0, until - time.monotonic())))
            if fresh is not None:
                self._later.note(owner, (), fresh)
            left = 0 if view is None else len(view.without_vectors)
            if not left or fresh is None or time.monotonic() > until:
                return left

    def _upkeep(self, connection: Writer, owner: str, now: datetime, *, all_of_it: bool = False) -> None:
        """What every write does beside its own: what has expired goes, what was recalled is noted."""
        at = stored_time(now)
        while numbers := connection.memories.expired(owner, at, memory_writes.A_STEP):
            _forget(connection, owner, numbers, [], [])
            if not all_of_it:
                break
        connection.memories.note_used(owner, self._later.take_used(owner))


def _memory(reader: Reader, owner: str, memory_id: str) -> Memory | None:
    numbers = reader.memories.numbers(owner, [memory_id])
    return next(iter(reader.memories.get(owner, list(numbers.values())).values()), None)


def _told(new: NewMemory) -> Told:
    """With its words and digest: what takes long is done before anything is locked."""
    return Told(
        id=new.id or f"mem-{uuid.uuid4().hex[:16]}",
        given_id=bool(new.id),
        key=new.key,
        digest=digest(replace(new, text=spoken_text(new.text, new.speaker))),
        type=new.type,
        category=new.category,
        importance=new.importance,
        namespace=new.namespace,
        session=new.session,
        persona=new.persona,
        speaker=new.speaker,
        created_at=str(new.created_at),
        expires_at=str(new.expires_at),
        tags=json.dumps(list(new.tags), ensure_ascii=False),
        metadata=json.dumps(new.metadata, ensure_ascii=False),
        text=new.text,
        body=words_of(new.text, new.speaker),
        sources=sources_of(new.metadata),
        replaces=new.replaces,
    )


def _forget(connection: Writer, owner: str, numbers: list[int], gone: list[str], made: list[str]) -> None:
    """These, and what was made from them; the ids of both are added."""
    summaries = connection.memories.summaries(owner, numbers)
    gone += connection.memories.forget(owner, numbers)
    if summaries:
        made += connection.memories.forget(owner, summaries)


def _by_salience(recalled: Sequence[Recalled], now: datetime) -> list[Recalled]:
    from research.conversation.salience import recency_boost, salience

    # What a score is made of, not the score: that says of one memory alone that it answers, and an old one that says
    # it in the question's words would always stand before the one that took it back (data/memory_updates.jsonl).
    scored = [
        replace(each, salience=salience(min(1.0, each.raw_score), recency_boost(each.memory.told_at, now)))
        for each in recalled
    ]
    return sorted(scored, key=lambda each: -(each.salience or 0.0))


def _count(name: str, value: object, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UsageError(f"{name} must be a whole number from 0, not {str(value)[:60]}")
    return min(value, most)


def _utc(now: datetime | None) -> datetime:
    if now is None:
        return datetime.now(UTC)
    return now.replace(tzinfo=UTC) if now.tzinfo is None else now.astimezone(UTC)


def _no_memory(memory_id: str) -> NothingFoundError:
    return NothingFoundError(f"no memory has the id {memory_id[:80]}", hint="see them with: ctx recall")


CLOSE = 0.9
"""The least cosine of two that may say the same."""

_ALIKE = 60.0  # of a hundred: the least that their words have in common, in any order
_FIGURES = re.compile(r"[^\sa-z]*[^\s\W_a-z]\S*|[^\w\s]+")  # what has anything but plain letters in it
_ARTICLES = frozenset({"a", "an", "the"})
# Figures as they stand, words with what joins their parts, and every sign but those that only end or divide.
_TOKEN = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W\d_]+(?:['’_-][^\W_]+)*|-(?=\d)|[^\s\w.,;:!?…\"“”„'’‘()\[\]*–—-]|\?$")


@cache
def _words() -> tuple[list[tuple[re.Pattern[str], str]], re.Pattern[str]]:
    """Contractions with what they stand for, and the words that must be the same ones."""
    import tomllib

    words = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))["same"]
    contractions = [(re.compile(pattern), plain) for pattern, plain in words["contractions"]]
    return contractions, re.compile(rf"\b(?:{'|'.join(words['telling'].split())})\b|\b\w{{3,}}ed\b")


def digest(new: NewMemory) -> str:
    """The same for memories that say the same in nearly the same words: by one speaker, of one kind."""
    whole = "\n".join((new.namespace, new.persona, new.type, new.speaker.casefold(), _folded(new.text)))
    return hashlib.sha256(whole.encode()).hexdigest()[:40]


def say_the_same(one: str, other: str) -> bool:
    """Whether each of two texts, whose vectors are close, says all that the other does."""
    from rapidfuzz import fuzz

    mine, theirs = _folded(one), _folded(other)
    if mine == theirs:
        return True
    alike = fuzz.token_sort_ratio(mine, theirs) >= _ALIKE
    if not alike or any(kind.findall(mine) != kind.findall(theirs) for kind in (_words()[1], _FIGURES)):
        return False
    from research.answer import read

    first, second = read(one), read(other)
    return _stated(first) == _stated(second) and _word_by_word(first, second)


def _folded(text: str) -> str:
    """Without case, punctuation, articles and contractions. Accents stay: Bär is another name than Bar."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    for pattern, plain in _words()[0]:
        folded = pattern.sub(plain, folded)
    found = _TOKEN.findall(folded)
    return " ".join([token for token in found if token not in _ARTICLES] or found or [folded])


def _stated(reading: Reading) -> tuple[object, ...]:
    """What two sentences for the same must have in common."""
    return (
        sorted((sorted(each.number.values), sorted(each.number.dates)) for each in reading.quantities),
        len(reading.negations),
        len(reading.plans),
        sorted(word.stem for word in reading.words if word.is_name),
        [bound for bound, _ in reading.bounds],
    )


def _word_by_word(first: Reading, second: Reading) -> bool:
    """The same words, or words for the same, in one order: Tim thanked Ann is not Ann thanked Tim."""
    return len(first.words) == len(second.words) and all(
        mine.text.casefold() == theirs.text.casefold() or (mine.keys & theirs.keys and not mine.is_name)
        for mine, theirs in zip(first.words, second.words, strict=True)
    )
