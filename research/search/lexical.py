"""The lexical leg: BM25 over words and word pairs of a page, and question words in the file name.

    words = BM25(words) / Σ idf                    at most 1; of rare words at least their floor (below)
    pairs = 0.2 · BM25(adjacent words) / Σ idf     at most 0.2
    name  = Σ idf(words in file name or title) / Σ idf  at most 0.5
    score = (words + pairs + name) / 1.7           0 to 1

Σ idf over the question's words is the most BM25 can reach, so scores of different questions are on one scale. The
name is capped: a question made of a file's name would otherwise rank that file's pages by nothing else. A year or
another number counts only beside a word of the same name: alone it chooses no document.

BM25 weighs a word by the length of its page, to rank the pages that hold it against each other. Where only a few do
there is nothing to rank, but the sum with other legs still feels it: among near-empty pages an ordinary one is ten
times as long as the average, its only word of that kind counts a tenth, and pages whose cosine with a single word says
nothing stand before it. So a word that few pages hold counts on each of them at least

    min(1, 2 · share of the question's weight) / √pages · share of the pages without it

in full where it is half of the question, next to nothing where it is one of ten: a long question holds words that are
rare by chance. In a small index few pages are not rare. What is written as one (2024-03-17, bug_1549) is one word,
though the index holds its pieces.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, pairwise

from research.models import Question
from research.search.legs import Hit, Hits
from research.store.catalog.pages import documents_of, page_ids_of, totals
from research.store.catalog.reader import Reader
from research.store.fulltext import search
from research.store.fulltext.analyzer import analyze, analyze_name
from research.store.fulltext.search import Floors, Term

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
class _Terms:
    """A question as this leg sees it."""

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
        asked = _terms_of(reader, question)
        if search.is_outdated(reader):
            question.notes.append(_OUTDATED)
        pages = search.find_words(reader, asked.terms, limit=depth)
        paired, complete = search.find_pairs(reader, asked.ordered, limit=depth)
        pages |= set(islice(paired, depth))
        # Short pages with the question's other words may be more than the depth, and each before the one that is meant.
        pages.update(page_id for least in asked.floors.values() for page_id in least)
        if complete:
            question.memo.get("pairs", lambda: paired)
        if not pages:  # words that stand on no page may still name a document
            pages = set(sorted(page_ids_of(reader, asked.documents))[:depth])
        return pages

    def score(self, reader: Reader, question: Question, page_ids: Sequence[int]) -> Hits:
        asked = _terms_of(reader, question)
        most = sum(term.idf for term in asked.terms)
        if most <= 0 or not page_ids:
            return {}
        known: search.ByWord = question.memo.of_any.get("words", dict)
        by_words = search.score_words(reader, asked.terms, page_ids, asked.floors, known)
        by_pairs: dict[int, float] | None = question.memo.known("pairs")
        if by_pairs is None:
            by_pairs = search.score_pairs(reader, asked.ordered, page_ids)
        by_name = _name_scores(reader, asked, page_ids)
        on_some_page = any(term.pages for term in asked.terms)  # else names are all there is, as in `candidates`
        hits: Hits = {}
        for page_id in page_ids:
            parts = {
                "words": by_words.get(page_id, 0.0) / most / _SCALE,
                "pairs": _PAIR_WEIGHT * min(1.0, by_pairs.get(page_id, 0.0) / most) / _SCALE,
                "name": min(_MOST_NAME, by_name.get(page_id, 0.0) / most) / _SCALE,
            }
            total = sum(parts.values())
            if total > 0:
                by_text = parts["words"] > 0 or parts["pairs"] > 0
                hits[page_id] = Hit(min(1.0, total), parts, found=by_text or not on_some_page)
        return hits


def terms_of(reader: Reader, question: Question) -> list[Term]:
    """The words of a question with their weights."""
    return _terms_of(reader, question).terms


def _terms_of(reader: Reader, question: Question) -> _Terms:
    return question.memo.get("terms", partial(_read, reader, question.wording))


def _read(reader: Reader, text: str) -> _Terms:
    ordered = analyze(text)
    terms = search.term_statistics(reader, ordered)
    if len(terms) > _MOST_WORDS:
        terms = sorted(terms, key=lambda term: -term.idf)[:_MOST_WORDS]
    kept = {term.word for term in terms}
    plain = analyze_name(text)
    joined = [a + b for a, b in pairwise(plain)]  # "Best Buy" in a question names BESTBUY_2023.pdf
    units = _written_with_digits(text)
    # BetMakers as it is written, and in its parts.
    names = [*(word for word in [*plain, *ordered] if word not in units), *joined]
    called = search.name_matches(reader, [word for word in names if not word.isdigit()])
    named = {doc_id: idf for doc_id, idf in search.name_matches(reader, names).items() if doc_id in called}
    return _Terms(terms, [word for word in ordered if word in kept], named, floors(reader, text, terms))


def _written_with_digits(text: str) -> set[str]:
    """Pieces of one or two letters that are written together with digits: FY2022 names no document by its FY."""
    return {
        piece
        for token in text.split()
        if any(map(str.isdigit, token))
        for piece in analyze_name(token)
        if piece.isalpha() and len(piece) <= 2
    }


def _name_scores(reader: Reader, asked: _Terms, page_ids: Sequence[int]) -> dict[int, float]:
    if not asked.documents:
        return {}
    owners = documents_of(reader, page_ids)
    return {page_id: asked.documents.get(doc_id, 0.0) for page_id, doc_id in owners.items()}


def floors(reader: Reader, text: str, terms: Sequence[Term]) -> Floors:
    """The least that words of the question count on the few pages that hold them."""
    known = {term.word: term for term in terms if term.pages}
    most, total = sum(term.idf for term in terms), totals(reader).pages
    found: Floors = {}
    names = list(_as_written(text, known))
    for written, pages in zip(names, search.few_pages(reader, names, most=_FEW), strict=True):
        if not pages:
            continue
        share = sum(known[word].idf for word in set(written)) / most
        floor = min(1.0, 2 * share) / len(pages) ** 0.5 * (1 - len(pages) / total)
        for word in set(written):
            least = found.setdefault(word, {})
            least.update((page_id, max(floor, least.get(page_id, 0.0))) for page_id in pages)
    return found


def _as_written(text: str, known: dict[str, Term]) -> Iterator[list[str]]:
    """The words that may be rare: alone, and joined as the question has them."""
    yield from ([term.word] for term in known.values() if term.pages <= _FEW)
    for token in dict.fromkeys(text.split()):
        pieces = analyze(token)
        if 1 < len(pieces) <= _MOST_PIECES and all(piece in known for piece in pieces):
            yield pieces
