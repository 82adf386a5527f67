"""Full-text search over pages: term statistics and BM25 scores from FTS5."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from research.store.catalog import counts
from research.store.catalog.catalog import Catalog
from research.store.catalog.pages import marks, slices

# FTS5 fixes k1 at 1.2; dividing by k1 + 1 turns tf·(k1+1)/(tf+norm) into tf/(tf+norm), whose maximum is 1.
_BM25_MAXIMUM = 2.2
_SCORE = "bm25(page_words, 1.0, 1.0)"
# Words on more pages than this cost most of the time and decide least; and how many such hits make it worth while to
# look at the other pages first.
_RARE_SHARE = 0.2
_WORTH_PRUNING = 10
_ORDER = 0.01  # of a floor: enough to tell its pages apart
_MOST_PAIR_PAGES = 1000  # whose pairs are scored at once; few questions have more


Floors = dict[str, dict[int, float]]
"""word → page_id → the least share of its weight that the word counts there."""


@dataclass(frozen=True, slots=True)
class Term:
    """A question word and how rare it is among the pages."""

    word: str
    pages: int  # that hold it
    share: float  # of all pages
    idf: float  # never zero: a word of every page still says a little
    fts_idf: float  # as FTS5 has it inside its bm25(), where a word of most pages counts nothing


def term_statistics(catalog: Catalog, words: Sequence[str]) -> list[Term]:
    """Each distinct word with its weight; words on no page have the highest."""
    distinct = list(dict.fromkeys(words))
    total, known = counts.pages(catalog), catalog.figures()
    for part in slices([word for word in distinct if ("pages with", word) not in known]):
        rows = catalog.connection.execute(f"SELECT term, doc FROM page_vocabulary WHERE term IN ({marks(part)})", part)
        pages = dict.fromkeys(part, 0) | {str(row[0]): int(row[1]) for row in rows}
        known.update((("pages with", word), count) for word, count in pages.items())
    return [_term(word, total, known["pages with", word]) for word in distinct]


def find_words(catalog: Catalog, terms: Sequence[Term], *, limit: int) -> set[int]:
    """The best `limit` pages that hold any of the words, by FTS5's own ranking."""
    present = [term for term in terms if term.pages]
    rare = [term for term in present if term.share <= _RARE_SHARE]
    most_common = sum(term.pages for term in present) - sum(term.pages for term in rare)
    if rare and most_common > _WORTH_PRUNING * limit:
        found = _score(catalog, _any(present), limit, _any(rare))
        # A page with none of the rare words scores less than this; if the last of the found is better, none is missing.
        bound = sum(term.fts_idf for term in present if term.share > _RARE_SHARE)
        if len(found) == limit and min(found.values()) > bound:
            return set(found)
    return set(_score(catalog, _any(present), limit))


def score_words(
    catalog: Catalog, terms: Sequence[Term], page_ids: Sequence[int], floors: Floors | None = None
) -> dict[int, float]:
    """page_id → BM25 of the words with the weights of `terms`; at most the sum of their idf."""
    scores: dict[int, float] = {}
    for term in terms:
        if not term.pages:
            continue
        least = (floors or {}).get(term.word, {})
        # One word at a time, so that FTS5's own weight can be divided out and ours put in.
        for page_id, score in _score_pages(catalog, _quote(term.word), page_ids).items():
            share = score / term.fts_idf
            # What lies below its floor keeps its order there.
            share = max(share, least.get(page_id, 0.0) * (1.0 - _ORDER + _ORDER * share))
            scores[page_id] = scores.get(page_id, 0.0) + share * term.idf
    return scores


def few_pages(catalog: Catalog, words: Sequence[str], *, most: int) -> list[int]:
    """The pages where the words stand in a row; none if those are more than `most`."""
    rows = catalog.connection.execute(
        "SELECT rowid FROM page_words WHERE page_words MATCH ? LIMIT ?", (_quote(" ".join(words)), most + 1)
    ).fetchall()
    return [int(row[0]) for row in rows] if len(rows) <= most else []


def find_pairs(catalog: Catalog, words: Sequence[str], *, limit: int) -> tuple[dict[int, float], bool]:
    """page_id → BM25 of adjacent word pairs, best first, and whether these are all pages with any. More than `limit`
    come where that is no trouble."""
    limit = max(limit, _MOST_PAIR_PAGES)
    found = _score(catalog, _pairs(words), limit)
    return found, len(found) < limit


def score_pairs(catalog: Catalog, words: Sequence[str], page_ids: Sequence[int]) -> dict[int, float]:
    """The same of these pages."""
    return _score_pages(catalog, _pairs(words), page_ids)


def phrase_pages(catalog: Catalog, words: Sequence[str], doc_ids: Sequence[str], *, limit: int) -> dict[int, str]:
    """page_id → doc_id of the pages of these documents where the words stand in a row, the best `limit` of them."""
    if not words:
        return {}
    rows = catalog.connection.execute(
        "SELECT page_id, doc_id FROM page_words JOIN pages ON page_id = page_words.rowid"
        f" WHERE page_words MATCH ? AND doc_id IN ({marks(doc_ids)}) ORDER BY rank LIMIT ?",
        (_quote(" ".join(words)), *doc_ids, limit),
    )
    return {int(row[0]): str(row[1]) for row in rows}


def name_matches(catalog: Catalog, words: Sequence[str]) -> dict[str, float]:
    """doc_id → summed idf (among documents) of the words found in its file name."""
    total = counts.documents(catalog)
    holders: dict[str, list[str]] = {}
    for part in slices(list(dict.fromkeys(words))):
        rows = catalog.connection.execute(f"SELECT word, doc_id FROM name_words WHERE word IN ({marks(part)})", part)
        for word, doc_id in rows:
            holders.setdefault(word, []).append(doc_id)
    scores: dict[str, float] = {}
    for doc_ids in holders.values():
        idf = _idf((total - len(doc_ids) + 0.5) / (len(doc_ids) + 0.5))
        for doc_id in doc_ids:
            scores[doc_id] = scores.get(doc_id, 0.0) + idf
    return scores


def _score(catalog: Catalog, expression: str, limit: int, holding: str = "") -> dict[int, float]:
    """The best `limit` pages of an expression; `holding`: only those that match this other one, too."""
    if not expression:
        return {}
    among = " AND +rowid IN (SELECT rowid FROM page_words WHERE page_words MATCH ?)" if holding else ""
    rows = catalog.connection.execute(
        f"SELECT rowid, {_SCORE} AS score FROM page_words WHERE page_words MATCH ?{among}"
        " ORDER BY score, rowid LIMIT ?",
        (expression, *([holding] if holding else []), limit),
    )
    return _scores(rows)


def _score_pages(catalog: Catalog, expression: str, page_ids: Sequence[int]) -> dict[int, float]:
    """These pages, where they match an expression."""
    found: dict[int, float] = {}
    for part in slices(page_ids) if expression else ():
        rows = catalog.connection.execute(
            f"SELECT rowid, {_SCORE} FROM page_words WHERE page_words MATCH ? AND +rowid IN ({marks(part)})",
            (expression, *part),
        )
        found.update(_scores(rows))
    return found


def _scores(rows: Iterable[Sequence[Any]]) -> dict[int, float]:
    # FTS5 counts better as more negative.
    return {int(row[0]): -float(row[1]) / _BM25_MAXIMUM for row in rows}


def _pairs(words: Sequence[str]) -> str:
    """The expression for pages with two of the words side by side."""
    return " OR ".join(_quote(f"{a} {b}") for a, b in dict.fromkeys(pairwise(words)))


def _any(terms: Sequence[Term]) -> str:
    """The expression for pages with any of the words."""
    return " OR ".join(_quote(term.word) for term in terms)


def _quote(text: str) -> str:
    """A string FTS5 takes as words, never as operators."""
    return '"' + text.replace('"', '""') + '"'


def _term(word: str, total: int, pages: int) -> Term:
    odds = (total - pages + 0.5) / (pages + 0.5)
    return Term(word, pages, pages / max(1, total), idf=_idf(odds), fts_idf=max(math.log(odds), 1e-6))


def _idf(odds: float) -> float:
    return math.log(1.0 + odds)
