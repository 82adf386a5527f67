"""Confidence: how likely it is that a page that answers the question is among those found.

Five things tell, none of which depends on how large the index is:

    score     the best sum of the legs, 0 to 1
    cosine    of the best passage, where words and vectors both searched
    together  how many words of the question stand on one of the first pages: of three, or of all if it has fewer
    lifted    whether a booster put the first page there, because the question points to it
    missing   the names and numbers of the question that a document found has nowhere: 0 none, towards 1 all

    value = 1 / (1 + exp(-(weights · these)))

Fitted by `make bench ONLY=confidence` on questions asked of their own documents and as many of others', near misses,
key words and gibberish; the same weights for every question and index. The levels are thresholds of the value. Below
`low` nothing found seems to answer; what words cannot tell is never put there: a page that the question points to, one
that holds every word of it, and a question in another language than its pages.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

from research.answer.question_words import Words, finder, folded, has_misspelt, is_foreign, names_in, words_in
from research.models import CONFIDENCE_LEVELS, Confidence
from research.store.fulltext.analyzer import analyze_name

if TYPE_CHECKING:
    from research.models import Item

_PAGES = 10  # that are looked at: more say more about the documents than about the question
_FIRST = 3  # of them are held against the question's words
_WORDS = 3  # of a question that must be on one page: fewer may be there by chance, more need not be
_NO_NAMES = 0.5  # so that one name of one weighs more than one of many


@dataclass(frozen=True, slots=True)
class Features:
    """What is known of a ranking; the last two only keep it from `none`."""

    score: float
    cosine: float
    together: float
    lifted: float
    missing: float
    whole: bool = False  # a page holds every word of the question
    foreign: bool = False  # it is asked in another language


@dataclass(frozen=True, slots=True)
class Weights:
    score: float
    cosine: float
    together: float
    lifted: float
    missing: float
    always: float


# By the legs that saw the pages. A leg alone has no other to agree with; boosters do not follow it.
WEIGHTS = {
    "both": Weights(4.88, 2.23, 2.14, 1.03, -5.32, -3.75),
    "lexical": Weights(5.57, 0.0, 2.71, 0.0, -4.54, -3.25),
    "dense": Weights(3.83, 0.0, 1.92, 0.0, -5.3, -2.38),
    "visual": Weights(3.87, 0.0, 1.92, 0.0, -5.03, -2.59),
}


def confidence_of(searched: str, items: Sequence[Item]) -> Confidence:
    """`searched` is the question as rewriters left it, `items` what was found for it, best first."""
    if not items:
        return Confidence.of(0.0)
    return judged(features_of(searched, items), legs_of(items))


def judged(features: Features, legs: str) -> Confidence:
    value = likelihood(features, WEIGHTS[legs])
    pointed = features.lifted > 0 and features.missing == 0
    if pointed or features.whole or features.foreign:
        value = max(value, CONFIDENCE_LEVELS["low"])
    return Confidence.of(value)


def likelihood(features: Features, weights: Weights) -> float:
    total = (
        weights.score * features.score
        + weights.cosine * features.cosine
        + weights.together * features.together
        + weights.lifted * features.lifted
        + weights.missing * features.missing
        + weights.always
    )
    return 1.0 / (1.0 + math.exp(-total))


def legs_of(items: Sequence[Item]) -> str:
    """Which weights hold: those of a leg that saw the pages alone, or of words and vectors together."""
    seen = {name for item in items[:_PAGES] for name in item.legs}
    if {"lexical", "dense"} <= seen:
        return "both"
    return next((name for name in ("lexical", "dense", "visual") if name in seen), "both")


def features_of(searched: str, items: Sequence[Item]) -> Features:
    pages, first = items[:_PAGES], items[:_FIRST]
    words = words_in(searched)
    found = _words_on(first, words)
    # A picture alone cannot be held against words.
    readable = any(page.text.strip() for page in first)
    return Features(
        score=min(1.0, max(page.raw_score for page in pages)),
        cosine=max(page.legs["dense"].score if "dense" in page.legs else 0.0 for page in first),
        together=_together(words, found) if readable else 1.0,
        lifted=float(any("place" in leg.parts for leg in first[0].legs.values())),
        missing=_missing(names_in(searched), pages, found) if readable else 0.0,
        whole=bool(words) and words in (_words_on(pages, words) if len(words) <= _WORDS else found),
        foreign=is_foreign(searched, [page.text for page in first]),
    )


def _words_on(pages: Sequence[Item], words: Words) -> list[Words]:
    """Which of the words each page has, on it or in the name of its document."""
    find = finder(words)
    names = {page.ref.key: f"{page.metadata['filename']} {page.title}" for page in pages}
    named = {document: words.intersection(analyze_name(name)) for document, name in names.items()}
    return [find(page.text) | named[page.ref.key] for page in pages]


def _together(words: Words, found: Sequence[Words]) -> float:
    return min(_WORDS, max(map(len, found))) / min(_WORDS, len(words)) if words else 0.0


def _missing(names: Mapping[str, float], pages: Sequence[Item], found: Sequence[Words]) -> float:
    """How much of the names a document has neither in its own name nor on its pages that were found, of which the first
    are known: of the documents of these the one that has most."""
    lacking: dict[str, Set[str]] = {page.ref.key: set(names) for page in pages[:_FIRST]}
    for page, words in zip(pages, found, strict=False):
        lacking[page.ref.key] = lacking[page.ref.key] - words
    if all(lacking.values()):
        lacking = {document: _still_lacking(left, document, pages) for document, left in lacking.items()}
    least = min(sum(names[name] for name in left) for left in lacking.values())
    return least / (sum(names.values()) + _NO_NAMES)


def _still_lacking(names: Set[str], document: str, pages: Sequence[Item]) -> Set[str]:
    """Without those that other pages of the document have, or that it has but for a slip."""
    own = [page for page in pages if page.ref.key == document]
    text = folded("\n".join([str(own[0].metadata["filename"]), own[0].title, *(page.text for page in own)]))
    left = names - finder(frozenset(names))(text)
    return {name for name in left if not has_misspelt(name, text)}
