"""What the engine is given and gives back: legs that find pages, the lexical one among them, rewriters, boosters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from types import MappingProxyType
from typing import NamedTuple, Protocol

from research.models import AnsweredBy, Coverage, FoundPart, LegScore, Question, Rewrite
from research.store import (
    ByWord,
    Floors,
    Reader,
    StoredPage,
    Term,
    analyze,
    analyze_name,
)
from research.units import Structure


class Hit(NamedTuple):
    """A page as one leg sees it. `parts` tells what `score` is made of.

    `gain` is for a leg that looks at the same evidence as another: only what it has beyond that one adds to the sum.
    """

    score: float
    parts: Mapping[str, float] = MappingProxyType({})
    gain: float | None = None
    found: bool = True  # False: the leg has something to say of it, but would not have found it by itself


Hits = dict[int, Hit]
"""page_id → hit."""


class Leg(Protocol):
    """Scores are on a fixed scale (about 0–1) that does not depend on the other pages found.

    A leg keeps nothing of a question: what it works out goes into the question's memo. Many threads may use it.
    """

    @property
    def name(self) -> str: ...

    @property
    def depth(self) -> int:
        """How many of its pages it gives at least: so many that a page good in two legs is seen by one of them, and so
        few that it stays quick."""
        ...

    @property
    def follows(self) -> str:
        """The leg that must have looked before this one, because it builds on what that found; empty for none."""
        ...

    def why_off(self, reader: Reader) -> str:
        """Why this index has no such side; empty if it has one."""
        ...

    def candidates(self, reader: Reader, question: Question, depth: int) -> Collection[int]:
        """The best `depth` pages of the whole index, or a few more."""
        ...

    def score(self, reader: Reader, question: Question, page_ids: Sequence[int]) -> Hits:
        """The scores of given pages; pages the leg knows nothing of are left out."""
        ...


class Ranked(NamedTuple):
    """A page in a ranking."""

    page_id: int
    doc_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Reranking:
    """Another text by which to rank the pages of these documents among themselves."""

    question: str
    documents: tuple[str, ...]
    keep_best: bool = False  # by the search before: a page that stands out stays, and none of the first falls far
    named: float = 0.0  # the share of the question that names these documents, and that the other text is without
    meant: int = 1  # documents that the name may mean, here or elsewhere
    rewrite: Rewrite | None = None  # what is to be told of it


@dataclass(frozen=True, slots=True)
class Boosted:
    """A ranking, the pages in it that were moved, and what it answers by: pages, or documents with a page each."""

    ranked: Sequence[Ranked]
    pages: Collection[int] = ()
    answered_by: AnsweredBy = "pages"
    parts: Mapping[int, FoundPart] = field(default_factory=dict)  # of their documents, that such pages hold


class Booster(Protocol):
    """What changes the order of what was found. Its name stands among the legs of the pages it moved."""

    @property
    def name(self) -> str: ...

    def boost(self, question: Question, reader: Reader, ranked: Sequence[Ranked]) -> Boosted:
        """The pages in their new order, or as they are: most questions do not concern it. Pages that no leg found may
        join."""
        ...


@dataclass(frozen=True, slots=True)
class Reranked:
    """A ranking in another order, and what its pages scored by that, by page_id."""

    ranked: Sequence[Ranked]
    scores: Mapping[int, LegScore] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What of the order the question chose itself: pages that a booster put in their places, pages in the order of the
    lines that a ratio is computed from, and documents that it names."""

    boosted: set[int] = field(default_factory=set)
    by_lines: set[int] = field(default_factory=set)
    documents: set[str] = field(default_factory=set)


class PageOrder(Protocol):
    """What looks at the first pages of a ranking once more, all of them together. Fails by a note, never by raising."""

    @property
    def name(self) -> str:
        """Under which its scores stand among the legs of a page."""
        ...

    def rerank(self, reader: Reader, question: Question, ranked: Sequence[Ranked], chosen: Chosen) -> Reranked:
        """The pages in their new order, which may not go against what was chosen."""
        ...


@dataclass(frozen=True, slots=True)
class Weights:
    """What each leg counts, by its name.

    `shares` are parts of one sum. A leg outside it changes the sum of the others: by a share of what it has beyond
    them (`gains`, for hits that tell their gain), or by taking a share of the whole (`blends`).
    """

    shares: Mapping[str, float]
    gains: Mapping[str, float]
    blends: Mapping[str, float]


# From sweeps on four development sets, flat around the optimum (RETRIEVAL.md). A lexical score of 1 is far rarer than a
# cosine of 1, hence its larger share. What a line of a scan has beyond its passage: .10 and .20 did as well as .15. The
# third of a visual model is not measured: no trained weights could be had, so it counts as one of three.
DEFAULT_WEIGHTS = Weights(
    shares={"lexical": 0.63, "dense": 0.37},
    gains={"visual": 0.15},
    blends={"visual": 1 / 3},
)


@dataclass(frozen=True, slots=True)
class Found:
    """A page with its text, its score and how each leg saw it."""

    page: StoredPage
    text: Structure  # its markdown and units; empty for candidates after the results
    score: float  # the weighted sum, 0 to 1
    legs: dict[str, LegScore]
    part: FoundPart | None = None


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    found: list[Found]
    coverage: Coverage
    timings: dict[str, float] = field(default_factory=dict)
    searched: str = ""
    rewrites: list[Rewrite] = field(default_factory=list)
    candidates: list[Found] = field(default_factory=list)  # every page that a leg named, where that was asked for
    answered_by: AnsweredBy = "pages"


def pages_with_text(
    reader: Reader, question: Question, page_ids: Sequence[int]
) -> dict[int, tuple[StoredPage, Structure]]:
    """Pages that are there, by id, with their texts; a question reads each of them once."""
    known: dict[int, tuple[StoredPage, Structure]] = question.memo.of_any.get("pages", dict)
    known.update(reader.pages.with_text([page_id for page_id in page_ids if page_id not in known]))
    return {page_id: known[page_id] for page_id in page_ids if page_id in known}


def places(reader: Reader, question: Question, page_ids: Sequence[int]) -> dict[int, tuple[str, int, str]]:
    """page_id → (filename, page, doc_id) of pages that are there; a question reads each of them once."""
    known: dict[int, tuple[str, int, str]] = question.memo.of_any.get("places", dict)
    known.update(reader.pages.places([page_id for page_id in page_ids if page_id not in known]))
    return {page_id: known[page_id] for page_id in page_ids if page_id in known}


_OUTDATED = "the pages were analysed by another version of ctx, so some words are not found; update: ctx doctor --fix"
_PAIR_WEIGHT = 0.2
_MOST_NAME = 0.5
_SCALE = 1.0 + _PAIR_WEIGHT + _MOST_NAME
# A pasted page as a question is searched by its rarest words.
_MOST_WORDS = 48
# On more pages the floor of a rare word is below what BM25 gives a page of average length.
_FEW = 10
# Longer ones are sentences in a script without blanks, not names.
_MOST_PIECES = 8


@dataclass(frozen=True, slots=True)
class Terms:
    """A question as the lexical leg sees it."""

    terms: list[Term]  # its words with their weights
    ordered: list[str]  # the same words as they stand in it, for pairs
    documents: dict[str, float]  # doc_id → weight of its words in the file name
    floors: Floors  # the least that its rare words count


class LexicalLeg:
    name = "lexical"
    follows = ""
    depth = 100

    def why_off(self, reader: Reader) -> str:
        return ""

    def candidates(self, reader: Reader, question: Question, depth: int) -> Collection[int]:
        asked = terms_of(reader, question)
        if reader.words.is_outdated():
            question.notes.append(_OUTDATED)
        known: ByWord = question.memo.of_any.get("words", dict)
        pages = reader.words.find(asked.terms, limit=depth, known=known)
        paired, complete = reader.words.find_pairs(asked.ordered, limit=depth)
        pages |= set(islice(paired, depth))
        # Short pages with the question's other words may be more than the depth, and each before the one that is meant.
        pages.update(page_id for least in asked.floors.values() for page_id in least)
        if complete:
            question.memo.get("pairs", lambda: paired)
        if not pages:  # words that stand on no page may still name a document
            pages = set(sorted(reader.pages.ids_of(asked.documents))[:depth])
        return pages

    def score(self, reader: Reader, question: Question, page_ids: Sequence[int]) -> Hits:
        asked = terms_of(reader, question)
        most = sum(term.idf for term in asked.terms)
        if most <= 0 or not page_ids:
            return {}
        known: ByWord = question.memo.of_any.get("words", dict)
        by_words = reader.words.score(asked.terms, page_ids, asked.floors, known)
        by_pairs: dict[int, float] | None = question.memo.known("pairs")
        if by_pairs is None:
            by_pairs = reader.words.score_pairs(asked.ordered, page_ids)
        owners = places(reader, question, page_ids) if asked.documents else {}
        by_name = {page_id: asked.documents.get(doc_id, 0.0) for page_id, (_, _, doc_id) in owners.items()}
        on_some_page = any(term.pages for term in asked.terms)  # else names are all there is, as in `candidates`
        hits: Hits = {}
        for page_id in page_ids:
            words = by_words.get(page_id, 0.0) / most / _SCALE
            pairs = _PAIR_WEIGHT * min(1.0, by_pairs.get(page_id, 0.0) / most) / _SCALE
            name = min(_MOST_NAME, by_name.get(page_id, 0.0) / most) / _SCALE
            if words or pairs or name:
                parts = {"words": words, "pairs": pairs, "name": name}
                found = words > 0 or pairs > 0 or not on_some_page
                hits[page_id] = Hit(min(1.0, words + pairs + name), parts, found=found)
        return hits


def terms_of(reader: Reader, question: Question) -> Terms:
    """The words of a question with their weights, read once."""
    known: Terms | None = question.memo.known("terms")
    if known is not None:
        return known
    text = question.wording
    ordered = analyze(text)
    terms = reader.words.statistics(ordered)
    if len(terms) > _MOST_WORDS:
        terms = sorted(terms, key=lambda term: -term.idf)[:_MOST_WORDS]
    kept = {term.word for term in terms}
    plain = analyze_name(text)
    joined = [a + b for a, b in pairwise(plain)]  # "Best Buy" in a question names BESTBUY_2023.pdf
    units = _written_with_digits(text)
    # BetMakers as it is written, and in its parts.
    names = [*(word for word in [*plain, *ordered] if word not in units), *joined]
    called = reader.words.name_matches([word for word in names if not word.isdigit()])
    named = {doc_id: idf for doc_id, idf in reader.words.name_matches(names).items() if doc_id in called}
    found = Terms(terms, [word for word in ordered if word in kept], named, floors(reader, text, terms))
    return question.memo.put("terms", found)


def _written_with_digits(text: str) -> set[str]:
    """Pieces of one or two letters that are written together with digits: FY2022 names no document by its FY."""
    return {
        piece
        for token in text.split()
        if any(map(str.isdigit, token))
        for piece in analyze_name(token)
        if piece.isalpha() and len(piece) <= 2
    }


def floors(reader: Reader, text: str, terms: Sequence[Term]) -> Floors:
    """The least that words of the question count on the few pages that hold them."""
    known = {term.word: term for term in terms if term.pages}
    most, total = sum(term.idf for term in terms), reader.pages.totals().pages
    found: Floors = {}
    # The words that may be rare: alone, and joined as the question has them.
    names = [[term.word] for term in known.values() if term.pages <= _FEW]
    for token in dict.fromkeys(text.split()):
        pieces = analyze(token)
        if 1 < len(pieces) <= _MOST_PIECES and all(piece in known for piece in pieces):
            names.append(pieces)
    for written, pages in zip(names, reader.words.few_pages(names, most=_FEW), strict=True):
        if not pages:
            continue
        share = sum(known[word].idf for word in set(written)) / most
        floor = min(1.0, 2 * share) / len(pages) ** 0.5 * (1 - len(pages) / total)
        for word in set(written):
            least = found.setdefault(word, {})
            least.update((page_id, max(floor, least.get(page_id, 0.0))) for page_id in pages)
    return found
