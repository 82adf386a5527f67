"""Salience: how much a memory matters now. 70 % is how well it fits the question, 30 % how young it is.

    0.7 · score + 0.3 · e^(−days / 30)

A memory of today has a recency of 1, one of a month .37, one of two .14. Without a time, or with one that cannot be
read, it is .5; one from the future is of today.

What a memory service answers, read with care: it may be another program's, ill, or hostile.

    {"candidates": [{"id": "mem-001", "score": 0.92, "text": "…", "metadata": {"source": "…", "timestamp": "…"}}]}

`results` may stand for `candidates`. An answer of another form is an error of the service; a candidate of another form
is left out and counted.

Whether two memories say the same. Cautious: what is joined wrongly is lost, what stays apart is found twice.

Equal are texts that differ in case, punctuation, articles and contractions alone (`digest`). Near are those whose
vectors are close and of which each says all that the other does (`say_the_same`): the same names, numbers and dates, as
often "no", the same persons, at the same time.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from research.errors import SomaClientError
from research.memories import NewMemory

if TYPE_CHECKING:
    from research.answer import Reading

UNKNOWN = 0.5  # the recency of what has no time
_DAY = 86_400.0
_MILLISECONDS = 1e11  # a number beyond this counts them, not seconds


@dataclass(frozen=True, slots=True)
class Salience:
    """The weights; `Salience(1, 0)` leaves the order to relevance alone."""

    relevance: float = 0.7
    recency: float = 0.3
    days: float = 30.0  # in which recency falls to a third

    def score(self, relevance: float, recency: float) -> float:
        return self.relevance * relevance + self.recency * recency


@dataclass(frozen=True, slots=True)
class Scored:
    """A candidate with what its score is made of."""

    candidate: Candidate
    score: float
    recency: float


def recency_boost(time: object, now: datetime, days: float = 30.0) -> float:
    """e^(−age / days), from a time in any form that is met."""
    then = read_time(time)
    if then is None:
        return UNKNOWN
    age = max(0.0, (now - then).total_seconds() / _DAY)
    return math.exp(-age / days) if days > 0 else float(age == 0)


def read_time(value: object) -> datetime | None:
    """ISO 8601 with Z, an offset or neither (then it is UTC), a date, or seconds since 1970; None if unreadable."""
    try:
        if isinstance(value, datetime):
            found = value
        elif isinstance(value, str):
            found = datetime.fromisoformat(value.strip())
        elif isinstance(value, int | float) and not isinstance(value, bool):
            seconds = float(value)
            found = datetime.fromtimestamp(seconds / 1000 if abs(seconds) > _MILLISECONDS else seconds, UTC)
        else:
            return None
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError, OSError):  # beyond the calendar, too
        return None


def apply_salience(candidates: Sequence[Candidate], now: datetime, salience: Salience | None = None) -> list[Scored]:
    weights = salience or Salience()
    scored = []
    for candidate in candidates:
        recency = recency_boost(candidate.time, now, weights.days)
        scored.append(Scored(candidate, weights.score(candidate.score, recency), recency))
    return scored


def rank(scored: Sequence[Scored], limit: int) -> list[Scored]:
    """The best, best first; what scores the same by relevance, then in the service's order."""
    ordered = sorted(scored, key=lambda each: (-each.score, -each.candidate.score))
    return ordered[: max(0, limit)]


def time_shown(metadata: Mapping[str, Any]) -> str:
    """A memory's time in one form; empty if it has none that can be read."""
    found = read_time(metadata.get("timestamp") or metadata.get("created_at"))
    return "" if found is None else found.isoformat()


MOST = 1000  # candidates that are looked at, whatever was asked for
LONGEST = 100_000  # characters of a memory; beyond it nobody meant it to be part of a prompt
_LONGEST_NAME = 200  # characters of an id or a source

_NAMES = ("candidates", "results")


@dataclass(frozen=True, slots=True)
class Candidate:
    """A memory as the service gave it: raw text, not to be shown before it is redacted."""

    id: str
    text: str
    score: float  # 0 to 1
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """Where it is from, for its label: the first of these that is there."""
        named = (self.metadata.get("source"), self.metadata.get("type"), self.id)
        return next((name[:_LONGEST_NAME] for name in named if isinstance(name, str) and name.strip()), "memory")

    @property
    def time(self) -> object:
        return self.metadata.get("timestamp") or self.metadata.get("created_at")


@dataclass(frozen=True, slots=True)
class Candidates:
    """What can be used, in the service's order, and how many were left out for which reason."""

    found: list[Candidate]
    dropped: Counter[str] = field(default_factory=Counter)


def read_candidates(answer: object) -> Candidates:
    """Raises SomaClientError ("nonsense") for an answer that is none."""
    listed = _listed(answer)
    found: list[Candidate] = []
    dropped: Counter[str] = Counter()
    seen: set[tuple[str, str]] = set()
    if len(listed) > MOST:
        dropped["too_many"] = len(listed) - MOST
    for each in listed[:MOST]:
        candidate = _candidate(each)
        if isinstance(candidate, str):
            dropped[candidate] += 1
        elif (candidate.id, candidate.text) in seen:
            dropped["repeated"] += 1
        else:
            seen.add((candidate.id, candidate.text))
            found.append(candidate)
    return Candidates(found, dropped)


def score_of(value: object) -> float:
    """A score from 0 to 1, whatever came for one. What is no number is no score."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0.0
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return 0.0
    return 0.0 if math.isnan(number) else min(1.0, max(0.0, number))


def _listed(answer: object) -> list[Any]:
    if isinstance(answer, list):
        return answer
    if not isinstance(answer, Mapping):
        raise _nonsense(f"{type(answer).__name__} where a document was expected")
    named = next((name for name in _NAMES if answer.get(name) is not None), None)
    listed = [] if named is None else answer[named]
    if not isinstance(listed, list | tuple):
        raise _nonsense(f"its {named} are no list")
    return list(listed)


def _candidate(each: object) -> Candidate | str:
    """A candidate, or the reason why it is none."""
    if not isinstance(each, Mapping):
        return "not_a_memory"
    text = each.get("text")
    if not isinstance(text, str):
        text = each.get("content")
    if not isinstance(text, str) or not text.strip():
        return "without_text"
    if len(text) > LONGEST:
        return "too_long"
    given, name = each.get("metadata"), each.get("id")
    metadata = dict(given) if isinstance(given, Mapping) else {}
    for field_name in ("timestamp", "created_at", "type", "source"):  # some services have them beside the text
        if field_name not in metadata and each.get(field_name) is not None:
            metadata[field_name] = each[field_name]
    known = str(name)[:_LONGEST_NAME] if isinstance(name, str | int) and not isinstance(name, bool) else ""
    return Candidate(known, text, score_of(each.get("score")), metadata)


def _nonsense(what: str) -> SomaClientError:
    return SomaClientError(
        f"the memory service did not answer as one does: {what}",
        code="nonsense",
        hint="see that SA01_SOMA_BASE_URL is the address of a memory service",
    )


CLOSE = 0.9
"""The least cosine of two that may say the same."""

_ALIKE = 60.0  # of a hundred: the least that their words have in common, in any order
_CONTRACTIONS = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"\bcan['’]t\b|\bcannot\b", "can not"),
        (r"\bwon['’]t\b", "will not"),
        (r"\b(\w+)n['’]t\b", r"\1 not"),
        (r"\bi['’]m\b", "i am"),
        (r"\b(you|we|they)['’]re\b", r"\1 are"),
        (r"\b(i|you|we|they)['’]ve\b", r"\1 have"),
        (r"\b(i|you|he|she|it|we|they)['’]ll\b", r"\1 will"),
        (r"\b(he|she|it|that|there|what|who)['’]s\b", r"\1 is"),
    )
)
_FIGURES = re.compile(r"[^\sa-z]*[^\s\W_a-z]\S*|[^\w\s]+")  # what has anything but plain letters in it
_ARTICLES = frozenset({"a", "an", "the"})
# Figures as they stand, words with what joins their parts, and every sign but those that only end or divide.
_TOKEN = re.compile(r"\d+(?:[.,:/-]\d+)*|[^\W\d_]+(?:['’_-][^\W_]+)*|-(?=\d)|[^\s\w.,;:!?…\"“”„'’‘()\[\]*–—-]|\?$")
# Who does it, whether and when, and which way: words of these kinds must be the same ones.
_TELLING = re.compile(
    r"""\b(?:
    i|me|my|mine|you|yours?|he|him|his|she|hers?|its?|we|us|ours?|they|them|theirs?|who|whose|
    am|is|are|was|were|be|been|had|has|have|did|do|does|will|would|shall|should|can|could|may|might|must|used|
    not|no|never|none|nobody|nothing|without|except|but|if|unless|maybe|perhaps|only|also|too|
    still|already|yet|again|ago|since|until|before|after|during|now|then|today|yesterday|tomorrow|tonight|\w+day|
    first|last|next|former|formerly|previously|back|longer|anymore|always|often|sometimes|rarely|seldom|
    more|less|most|least|than|all|both|each|every|some|any|many|few|much|other|another|same|
    from|to|for|by|with|on|off|up|down|in|out|over|under|above|below|at|of|about|against|like|and|or
    )\b|\b\w{3,}ed\b""",
    re.VERBOSE,
)


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
    if not alike or any(kind.findall(mine) != kind.findall(theirs) for kind in (_TELLING, _FIGURES)):
        return False
    from research.answer import read

    first, second = read(one), read(other)
    return _stated(first) == _stated(second) and _word_by_word(first, second)


def _folded(text: str) -> str:
    """Without case, punctuation, articles and contractions. Accents stay: Bär is another name than Bar."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    for pattern, plain in _CONTRACTIONS:
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
