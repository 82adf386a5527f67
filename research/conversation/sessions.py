"""Sessions: conversations with the documents. The next question leans on the turns before it, and becomes one itself.

What is kept of a turn is the question, what was searched, the pages cited with what was quoted of them, and what a
model wrote. It lies in the index, under the name of a session, and belongs to a tenant.

Follow-ups: what a question means that leans on the one before it, found without a language model.

    "How long is the guarantee of the G4?"   "And for the wind vane?"   → searched with guarantee, G4

A question leans if it says so ("and in 2024?", "what about hotels?"), if it points to something outside itself ("what
are its limitations?", "how much is that in euros?"), or if it has no subject of its own ("to whom first?"). Then words
of the question before it are searched with it: names first, then rare ones, and no more than its own words outweigh;
not those it puts others in the place of, a year for a year, E09 for E02, one document's name for another's. One
that asks something else of what was named ("who is its chairman?") is searched with the name alone. Documents that
answered before come a little earlier, whether it leans or not, unless it names others: what is not said again is meant
still. Nothing is done to a question that names another subject.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from research.conversation.intake import name_of
from research.errors import CtxError, NothingFoundError, UsageError
from research.memories import AskedTurn, CitedPage, Session
from research.models import Question, Rewrite
from research.store import analyze, analyze_name
from research.text import storable, stored_time

if TYPE_CHECKING:
    from research.models import Question, ResearchContext
    from research.store import Catalog, Reader

_LOOKED_AT = 5  # pages of a turn that say which documents it was about


class Sessions:
    """Those of an index. May be used by many threads."""

    def __init__(self, catalog: Callable[[], Catalog]) -> None:
        self._catalog = catalog

    def next_question(
        self,
        reader: Reader,
        question: Question,
        session: str | None,
        tenant: str,
        *,
        before: Sequence[str] = (),
        turn: int = 0,
    ) -> tuple[Question, str]:
        """The question as its session makes it (as it was before a `turn`, if that is given), or questions that were
        asked `before`; and the one that it leans on, if it does."""
        kept: list[Earlier] = []
        if session is not None:
            question = replace(question, session=session_name(session), tenant=tenant)
            stored = reader.sessions.turns(tenant, question.session, last=None if turn else MOST_TURNS)
            kept = [_earlier(each) for each in stored if not turn or each.number < turn]
        turns: list[Earlier] = []
        try:
            for text in before:  # each may have leaned on the one before it
                turns.append(Earlier(text, follow_up(text, turns, reader).searched))
            turns += kept
            found = follow_up(question.text, turns, reader)
        except CtxError:
            raise
        except Exception as error:  # noqa: BLE001  it costs itself alone: the question is asked as it stands
            from research.observe import log_failure

            log_failure("conversation", "reading a follow-up failed", error)
            question.notes.append(f"what was asked before was left out ({type(error).__name__})")
            return question, ""
        if found.rewrite is None:
            return replace(question, about=found.about), ""
        asked = replace(question.searching(found.searched), about=found.about, rewrites=(found.rewrite,))
        return asked, turns[-1].question

    def keep(self, context: ResearchContext, session: str, tenant: str) -> ResearchContext:
        """The context with its number in the session. Where it cannot be written, a note tells: it was answered all the
        same."""
        quotes: dict[int, list[str]] = {}
        for quote in context.quotes:
            quotes.setdefault(quote.citation, []).append(storable(quote.text))
        sources = tuple(
            CitedPage(number, source.doc_id, source.page, source.relevance_score, tuple(quotes.get(number, ())))
            for number, source in context.get_citation_map().items()
            if source.kind == "page"
        )
        now = stored_time(datetime.now(UTC))
        turn = AskedTurn(storable(context.query), storable(context.searched), sources, asked_at=now)
        try:
            with self._catalog().short_write() as connection:
                number = connection.sessions.add(tenant, session, turn)
        except CtxError as error:
            note = f"this turn is not kept in the session: {error.message}"
            coverage = replace(context.coverage, notes=[*context.coverage.notes, note])
            return replace(context, session=session, coverage=coverage)
        return replace(context, session=session, turn=number)

    def keep_answer(self, context: ResearchContext, tenant: str, answer: str, model: str) -> None:
        """What a model wrote to a turn that was kept."""
        if context.turn and answer:
            with self._catalog().short_write() as connection:
                connection.sessions.keep_answer(
                    tenant, context.session, context.turn, answer=storable(answer), model=storable(model)
                )

    def listed(self, tenant: str) -> list[Session]:
        """The one asked last first."""
        with self._catalog().snapshot() as reader:
            return reader.sessions.all(tenant)

    def turns(self, session: str, tenant: str, *, last: int | None = None) -> list[AskedTurn]:
        """Oldest first; none if there is no such session yet."""
        with self._catalog().snapshot() as reader:
            return reader.sessions.turns(tenant, session, last=last)

    def remove(self, session: str, tenant: str) -> int:
        """How many turns it had; overwritten in the file."""
        with self._catalog().short_write(erase=True) as connection:
            removed = connection.sessions.remove(tenant, session)
        self._catalog().shrink_log()
        return removed


def session_name(given: str) -> str:
    """Raises UsageError for what is no name."""
    name = name_of("session", given)
    if not name:
        raise UsageError("a session needs a name", hint="--session NAME")
    return name


def no_session(name: str) -> NothingFoundError:
    return NothingFoundError(f"there is no session {name}", hint="see them with: ctx session")


def _earlier(turn: AskedTurn) -> Earlier:
    documents: dict[str, float] = {}
    for source in turn.sources[:_LOOKED_AT]:
        documents.setdefault(source.doc_id, source.relevance_score)
    return Earlier(turn.question, turn.searched, tuple(documents.items()))


NAME = "follow-up"
MOST_TURNS = 3  # that are looked at

# What it counts, in a sum of the legs, that a page is of a document that answered before. Half as much, or three times,
# finds nearly the same (`make bench ONLY=followups`).
_LEANING, _STANDING = 0.10, 0.04
_FADING = 0.5  # of that, for each turn further back
_RATIO = 1.0  # of the weight of its own words, that words of the question before may have
_LEAST_WORDS, _MOST_WORDS = 2, 16
_MOST_LETTERS = 400  # what is longer is no follow-up
_WHOLE = 4  # words of its own that make a question whole, though it begins with "and"
_NO_SUBJECT = 1  # words of its own, and it has none
_A_NAME = 0.5  # a word names a document if so much of its pages belong to documents named so

_WORDS: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("words.toml").read_text("utf-8"))[
    "follow_ups"
]


def _all(name: str) -> list[str]:
    """The words of this kind in every language."""
    return [word for language in _WORDS.values() for word in language.get(name, ())]


def _any(name: str) -> str:
    return f"(?:{'|'.join(_all(name))})"


_WORD = re.compile(r"[^\W_]+(?:[-'’.&][^\W_]+)*")
_OPENER = re.compile(rf"^\W*{_any('openers')}\b[\s,:]*", re.IGNORECASE)
_ENGLISH = re.compile(r"\b(?:the|what|how|who|when|where|which|does|is|are|and|of)\b", re.IGNORECASE)
_POINTING = re.compile(rf"\b{_any('pointing')}", re.IGNORECASE)
_EMPTY = re.compile(rf"\b{_any('empty')}\b", re.IGNORECASE)
# "Who is its auditor?", "where does its gas come from?": something else is asked of what was named.
_SOMETHING_ELSE = re.compile(
    rf"\b{_any('owned')} \w|^\W*{_any('who')} {_any('is')} {_any('the')} [\w-]+\W*$", re.IGNORECASE
)
_WHO = re.compile(rf"\W*{_any('who')}\b", re.IGNORECASE)
_CLAUSE = re.compile(rf"[,;:.]|\b{_any('clauses')}\b", re.IGNORECASE)
_ARTICLE = re.compile(rf"\b{_any('articles')}\b", re.IGNORECASE)
_PREPOSITION = re.compile(rf"{_any('prepositions')}\b", re.IGNORECASE)
_ASKS = re.compile(rf"{_any('asks')}\b", re.IGNORECASE)
_YEAR = re.compile(r"(?:FY)?(?:19|20)\d\d")
_CODE = re.compile(r"[^\W\d_]{1,4}-?\d{1,5}\w?")
_NUMBER = re.compile(r"\d[\d.,]*")


@dataclass(frozen=True, slots=True)
class Earlier:
    """A turn that was answered before, as far as the next question may lean on it."""

    question: str
    searched: str = ""  # with what it was searched itself
    documents: tuple[tuple[str, float], ...] = ()  # of its sources, each with the score of its best page, best first


@dataclass(frozen=True, slots=True)
class FollowUp:
    """A question in its conversation: what to search, and the documents it is about with what that counts."""

    searched: str
    about: Mapping[str, float] = field(default_factory=dict)
    rewrite: Rewrite | None = None


def follow_up(question: str, earlier: Sequence[Earlier], reader: Reader) -> FollowUp:
    """`earlier`: the turns of the conversation, oldest first."""
    turns = list(earlier)[-MOST_TURNS:]
    if not turns or len(question) > _MOST_LETTERS:
        return FollowUp(question)
    reason = leans(question)
    naming: set[str] = set() if _points(question) else _others_named(question, turns, reader)
    if naming and set(analyze(_rest(question))) - naming:
        return FollowUp(question)  # something of another document
    about = {} if naming else _about(question, turns, _LEANING if reason else _STANDING, reader)
    added = _carried(question, turns[-1], reader) if reason else []
    if not added:
        return FollowUp(question, about)
    searched = f"{question} {' '.join(added)}"
    why = f"{reason}, so words of the question before are searched with it: {', '.join(added)}"
    return FollowUp(searched, about, Rewrite(NAME, question, searched, why))


def leans(question: str) -> str:
    """Why a question is not whole by itself; empty if it seems to be."""
    rest = _rest(question)
    own, points = [word for word in analyze(rest) if word not in _small()], _points(rest)
    if rest != question and (points or len(own) < _WHOLE):
        return "it goes on from what was asked"
    if points:
        return "it points to what was said"
    return "it names no subject" if len(own) <= _NO_SUBJECT else ""


@cache
def _small() -> frozenset[str]:
    """The small words of German, French and Spanish: the analyzer knows those of English."""
    return frozenset(analyze(" ".join(language.get("small", "") for language in _WORDS.values())))


def _rest(question: str) -> str:
    """Without the words that begin a question which goes on."""
    return _OPENER.sub("", question, count=1)


def _points(question: str) -> bool:
    """Whether it speaks of something that it does not name."""
    text = _EMPTY.sub(" ", question)
    if _POINTING.search(text):
        return True
    own = [] if _ENGLISH.search(text) else ["own_"]  # words that English has, too, for something else
    pronouns, possessives = ({w for p in ("", *own) for w in _all(p + kind)} for kind in ("pronouns", "possessives"))
    for match in _WORD.finditer(text):
        word, before, after = match.group().lower(), text[: match.start()], text[match.end() :]
        if word in possessives and not _has_owner(before):
            return True
        if word in pronouns and not _named_in_clause(before, after):
            return True
    return False


def _has_owner(before: str) -> bool:
    """Whether something stands there that a possessive may belong to: a noun with its article, or a name."""
    return bool(_ARTICLE.search(before)) or any(word[0].isupper() for word in _WORD.findall(before)[1:])


def _named_in_clause(before: str, after: str) -> bool:
    """Whether another clause may name what a pronoun stands for: one before it, or a list behind it. In its own clause
    nothing can: "What is the role of coinsurance in it?" """
    *clauses, _ = _CLAUSE.split(before)
    return bool(analyze(" ".join(clauses))) or len(analyze(after.partition(", ")[2])) > 1


def _carried(question: str, turn: Earlier, reader: Reader) -> list[str]:
    """Words of the question before, as they were written, to be searched with this one."""

    text, rest, own = turn.searched or turn.question, _rest(question), set(analyze(question))
    replaced, names = _replaced(question, text), _names(text, reader)
    others = _names(rest, reader, capitals=False)
    if others and not _points(question) and set(analyze(" ".join(others))).isdisjoint(analyze(" ".join(names))):
        replaced = replaced | names
    found: dict[str, str] = {}  # stems → word
    for word in _WORD.findall(text):
        stems = analyze(word)
        if stems and not own.issuperset(stems) and word not in replaced and not _is_asking(word):
            found.setdefault(" ".join(stems), word)
    if _SOMETHING_ELSE.search(rest) and (named := [word for word in found.values() if word in names]):
        return named[:_MOST_WORDS]
    if (len(own) <= _NO_SUBJECT and not (own and _WHO.match(rest))) or (rest != question and not _ASKS.match(rest)):
        return list(found.values())[:_MOST_WORDS]  # all that is asked was asked before
    stems = [*own, *(stem for key in found for stem in key.split())]
    weights = {term.word: term.idf for term in reader.words.statistics(stems)}
    cost = {key: sum(weights[stem] for stem in key.split()) for key in found}
    room, chosen = _RATIO * sum(weights[stem] for stem in own), set[str]()
    for key in sorted(found, key=lambda key: (not found[key][0].isupper(), -cost[key])):
        if len(chosen) < _LEAST_WORDS or cost[key] <= room:
            chosen.add(key)
            room -= cost[key]
    return [word for key, word in found.items() if key in chosen][:_MOST_WORDS]


def _is_asking(word: str) -> bool:
    return word.lower() in _WORDS["en"]["asking"].split() or _small().issuperset(analyze(word))


def _names(text: str, reader: Reader, *, capitals: bool = True) -> set[str]:
    """The words of a question that name a document, or something else by a capital where nouns have none."""
    from research.search import naming

    words = _WORD.findall(text)
    held = set[str]().union(*reader.lookups.named_words(set(analyze(text))).values())
    stems = naming(Question(text), reader).words | {
        stem for stem in held if reader.words.share_of_named(stem) >= _A_NAME
    }
    found = {word for word in words if not word.isdecimal() and (own := analyze(word)) and stems.issuperset(own)}
    if capitals and _ENGLISH.search(text):
        found |= {word for word in words[1:] if word[0].isupper() and not (found and word.isalpha() and word.isupper())}
    return found


def _replaced(question: str, before: str) -> set[str]:
    """Words of the question before that this one puts others in the place of."""
    new = {kind for word in _WORD.findall(question) if (kind := _kind(word))}
    return {word for word in _WORD.findall(before) if _kind(word) in new} or _other_object(question, before)


def _kind(word: str) -> str:
    """What a word must be for another to take its place: a year, a number, or a code that looks like it."""
    if _YEAR.fullmatch(word):
        return "year"
    if _CODE.fullmatch(word):
        return re.sub(r"\d", "0", re.sub(r"[^\W\d_]", "a", word))
    return "number" if _NUMBER.fullmatch(word) else ""


def _other_object(question: str, before: str) -> set[str]:
    """ "And of Flow Metering?" takes the place of "of Weighing Systems"."""
    rest = _rest(question)
    preposition = _PREPOSITION.match(rest)
    if preposition is None:
        return set()
    found = re.search(rf"\b{preposition.group()}\b(?P<object>.*)", before, re.IGNORECASE)
    words = [word for word in _WORD.findall(found["object"]) if analyze(word)] if found else []
    return set(words[: max(1, len(analyze(rest)))])


def _about(question: str, turns: Sequence[Earlier], weight: float, reader: Reader) -> dict[str, float]:
    """The documents that answered before; only those that the years and names of the question fit, if any does."""
    found: dict[str, float] = {}
    for turn in reversed(turns):
        for place, (doc_id, _) in enumerate(turn.documents, start=1):
            found[doc_id] = max(found.get(doc_id, 0.0), weight / place**2)  # of two that answer, the first is meant
        weight *= _FADING

    words = _WORD.findall(_rest(question))
    names = [word for place, word in enumerate(words) if _YEAR.fullmatch(word) or (place and word[0].isupper())]
    named = reader.lookups.named_words({stem for word in names for stem in analyze_name(word)})
    return {doc_id: value for doc_id, value in found.items() if not named or doc_id in named}


def _others_named(question: str, turns: Sequence[Earlier], reader: Reader) -> set[str]:
    """The words of a question that name documents which have not answered before; one is hardly used for more."""

    known = {doc_id for turn in turns for doc_id, _ in turn.documents}
    named = reader.lookups.named_words(set(analyze(_rest(question))))
    old = {word for doc_id, words in named.items() if doc_id in known for word in words}
    new = {word for words in named.values() for word in words} - old
    return new if any(reader.words.share_of_named(word) >= _A_NAME for word in new) else set()
