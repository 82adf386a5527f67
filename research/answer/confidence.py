"""Confidence: how likely it is that a page that answers the question is among those found.

Four things tell, and they mean the same in an index of any size:

    score     the best sum of the legs, 0 to 1
    together  how many words of the question stand on one of the first pages: of three, or of all if it has fewer
    lifted    whether a booster put the first page there, because the question points to it
    missing   the names and numbers of the question that a document found has nowhere: 0 none, towards 1 all

    value = 1 / (1 + exp(-(weights · these)))

Fitted by `make bench ONLY=confidence` on questions asked of their own documents and as many of others', near misses,
key words and gibberish; the same weights for every question and index. The levels are thresholds of the value. Below
`low` nothing found seems to answer; what the words cannot tell is never put there: a page that the question points to,
one that holds every word of it or says much the same in others, and a question in another language than its pages,
which is never put above `low` either.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import astuple, dataclass
from operator import mul
from typing import TYPE_CHECKING

from research.answer.quotes import (
    ASKING,
    NO_NAMES,
    Words,
    finder,
    folded,
    has_misspelt,
    is_language,
    names_in,
    other_languages,
    same_names,
    table_above,
    words_in,
)
from research.models import CONFIDENCE_LEVELS, Confidence
from research.search import YEAR, years_asked
from research.store import analyze, analyze_name

if TYPE_CHECKING:
    from research.models import Coverage, Item, Question

_PAGES = 10  # that are looked at: more say more about the documents than about the question
_FIRST = 3  # of them are held against the question's words
_WORDS = 3  # of a question that must be on one page: fewer may be there by chance, more need not be
_FEW = 0.5  # of them: a page may say it in other words
_ALIKE = 0.4  # cosine: one far question in a thousand has it and nothing else
_LEAST = 0.0001  # of what was found at all
_DOUBTED = 0.3  # at most, of a question in another language than the pages, or of a year that no passage is of
_NAMED = 3  # names that are told
_BEGINS = rf"(?:{'|'.join(ASKING)}|which|is|are|was|were|do|can|may|must|should|has|have|will)\b"
_ASKS = re.compile(_BEGINS, re.IGNORECASE)
_AND = "(?:and|but|or|und|oder|et|ou|y|o|e|en)"
_PARTED = re.compile(rf"(?:[?;:,.]\s+(?:{_AND}\s+)?|\s{_AND}\s+)(?={_BEGINS})", re.IGNORECASE)
_TELLING = 2  # words without which a part says nothing of its own
_PARTLY = 0.6  # how sure it is at most that a question is answered of which a part is not


@dataclass(frozen=True, slots=True)
class Features:
    """What is known of a ranking; the last three only keep it from `none`."""

    score: float
    together: float
    lifted: float
    missing: float
    whole: bool = False  # a page holds every word of the question
    alike: bool = False  # a passage means much the same, in other words
    foreign: tuple[str, str] | None = None  # the language of the question and that of the pages, and no passage is near
    lacking: tuple[str, ...] = ()  # the names that are missing, as they were asked for
    undated: Words = frozenset()  # the years that it names, and nothing found is of them


@dataclass(frozen=True, slots=True)
class Weights:
    score: float
    together: float
    lifted: float
    missing: float
    always: float


# By the legs that took part; boosters do not follow one that stands alone.
WEIGHTS = {
    "both": Weights(11.6, 2.4, 1.1, -9.1, -5.1),
    "lexical": Weights(9.3, 2.7, 0.0, -6.5, -4.2),
    "dense": Weights(4.1, 2.3, 0.0, -7.4, -2.8),
    "visual": Weights(4.4, 2.2, 0.0, -7.0, -3.1),
}


def confidence_of(question: Question, items: Sequence[Item], coverage: Coverage) -> Confidence:
    """How sure it is that the items, best first, answer the question as it was searched; its notes hear of doubts."""
    if not items:
        return Confidence.of(0.0)
    features = features_of(question.wording, items)
    question.notes.extend(_doubts(items, features))
    return judged(features, weights_for(coverage))


def whole(sure: Confidence, asked: str, shown: Sequence[Item]) -> tuple[Confidence, str]:
    """How sure it is that a question of several parts is answered, one of which what is shown may leave open; and a
    note about that."""
    parts = [part for part in _PARTED.split(asked) if _ASKS.match(part) and len(words_in(part)) >= _TELLING]
    texts = [f"{item.title}\n{item.ref}\n{item.metadata.get('filename', '')}\n{item.text}" for item in shown]
    for part in parts if len(parts) > 1 and sure.value >= _PARTLY else ():
        words = words_in(part)
        find = finder(words)
        if all(len(find(text)) < _FEW * len(words) for text in texts):
            return Confidence.of(_PARTLY), f"Nothing shown seems to say “{part.strip(' ,;:?!.')}”."
    return sure, ""


def judged(features: Features, weights: Weights) -> Confidence:
    signs = (features.score, features.together, features.lifted, features.missing, 1.0)
    value = 1.0 / (1.0 + math.exp(-sum(map(mul, signs, astuple(weights)))))
    pointed = features.lifted > 0 or features.whole or features.alike
    if (pointed and features.missing == 0) or features.foreign:
        value = max(value, CONFIDENCE_LEVELS["low"])
    most = _DOUBTED if features.foreign or features.undated else 1.0
    return Confidence.of(max(min(value, most), _LEAST))


def weights_for(coverage: Coverage) -> Weights:
    """Those of the legs that took part: of one that stood alone, whatever was asked for, or of words and vectors."""
    legs = {leg.name for leg in coverage.legs if leg.status == "ok"}
    alone = "" if {"lexical", "dense"} <= legs else next((name for name in WEIGHTS if name in legs), "")
    return WEIGHTS[alone or "both"]


def features_of(searched: str, items: Sequence[Item]) -> Features:
    pages, first = items[:_PAGES], items[:_FIRST]
    words = words_in(searched)
    on_pages = _words_on(pages if len(words) <= _WORDS else first, words)
    found = on_pages[:_FIRST]
    together = min(_WORDS, max(map(len, found))) / min(_WORDS, len(words)) if words else 0.0
    nearest = max(page.legs["dense"].score if "dense" in page.legs else 0.0 for page in first)
    alike = together < _FEW and nearest >= _ALIKE and is_language(searched)  # gibberish lies near to that of charts
    # A picture alone cannot be held against words.
    readable = any(page.text.strip() for page in first)
    missing, lacking = _missing(searched, pages, found) if readable else (0.0, ())
    return Features(
        score=min(1.0, max(page.raw_score for page in pages)),
        together=together if readable else 1.0,
        lifted=float(any("place" in leg.parts for leg in first[0].legs.values())),
        missing=missing,
        lacking=lacking,
        whole=bool(words) and words in on_pages,
        alike=alike,
        foreign=None if alike else other_languages(searched, [page.text for page in first]),
        undated=_years_lacking(searched, pages),
    )


def _doubts(items: Sequence[Item], features: Features) -> Iterator[str]:
    """What speaks against an answer being there, in words."""
    if features.foreign:
        yield (
            "The question is in {} and these pages are in {}; ctx compares words, so ask in their language, or set "
            "text_encoder to a multilingual model and ingest again."
        ).format(*features.foreign)
    elif features.lacking:
        yield f"None of these pages has {' or '.join(f'“{name}”' for name in features.lacking[:_NAMED])}."
    elif features.undated:
        passages = ((page, passage) for page in items[:_PAGES] for passage in page.passages)
        near = next((max(found) for each in passages if (found := YEAR.findall(table_above(*each)))), "")
        years = ", ".join(sorted(features.undated))
        yield f"Nothing found is for {years}{f'; the nearest figures are for {near}' if near else ''}."


def _years_lacking(searched: str, pages: Sequence[Item]) -> Words:
    """The years that a question names, if no passage with other words of it is of one: by its own text, its table, its
    headings, or the name of its document."""
    years = years_asked(searched)
    if not years or not any(page.passages for page in pages):
        return frozenset()
    words = {word for word in words_in(searched) - names_in(searched).keys() if not word.isdigit()}
    for page in pages:
        name = f"{page.metadata['filename']} {page.title}"
        for passage in page.passages:
            told = f"{passage.section_path}\n{table_above(page, passage)}\n{passage.text}"
            dated = any(year in name or year in told for year in years)
            if dated and (not words or not words.isdisjoint(analyze(told))):
                return frozenset()
    return years


def _words_on(pages: Sequence[Item], words: Words) -> list[Words]:
    """Which of the words each page has, on it or in the name of its document."""
    find = finder(words)
    names = {page.ref.key: f"{page.metadata['filename']} {page.title}" for page in pages}
    named = {document: words.intersection(analyze_name(name)) for document, name in names.items()}
    return [find(page.text) | named[page.ref.key] for page in pages]


def _missing(searched: str, pages: Sequence[Item], found: Sequence[Words]) -> tuple[float, tuple[str, ...]]:
    """How much of the names a document has neither in its own name nor on its pages that were found, of which the first
    are known: of the documents of these the one that has most. And those of the names, as they were asked for, that no
    page has."""
    names = names_in(searched)
    lacking: dict[str, Set[str]] = {page.ref.key: set(names) for page in pages[:_FIRST]}
    for page, words in zip(pages, found, strict=False):
        lacking[page.ref.key] = lacking[page.ref.key] - words
    if all(lacking.values()):
        lacking = {document: _still_lacking(left, document, pages) for document, left in lacking.items()}
    for one, other in same_names(searched):
        lacking = {
            document: left if one & left and other & left else left - one - other for document, left in lacking.items()
        }
    least = min(lacking.values(), key=lambda left: sum(names[name] for name in left))
    nowhere = least - frozenset().union(*_words_on(pages, frozenset(least))) if least else least
    asked = [word.strip(".,;:?!()'’\"") for word in searched.split() if not nowhere.isdisjoint(analyze(word))]
    return sum(names[name] for name in least) / (sum(names.values()) + NO_NAMES), tuple(dict.fromkeys(asked))


def _still_lacking(names: Set[str], document: str, pages: Sequence[Item]) -> Set[str]:
    """Without those that other pages of the document have, or that it has but for a slip."""
    own = [page for page in pages if page.ref.key == document]
    text = folded("\n".join([str(own[0].metadata["filename"]), own[0].title, *(page.text for page in own)]))
    left = names - finder(frozenset(names))(text)
    return {name for name in left if not has_misspelt(name, text)}
