"""SQLite's own: what full-text search holds of items, kept with them, and BM25 scores from FTS5.

Identifiers are words, too: `parseHttpDate` and `parse_http_date` both stand for parse, http and date, and for
themselves as a whole, so each finds the others and what they say in plain words.

Items of all kinds share one table. A word has the sign of its kind before it (`c.pars`), so that a word is as rare as
it is among the items of a kind, whatever else is in the index.
"""

from __future__ import annotations

import math
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from research.store.catalog.items import KINDS, kind_state
from research.store.catalog.pages import rows_in
from research.store.catalog.reader import Reader
from research.store.fulltext.analyzer import analyze_name, stem

# Whoever changes what words an item has raises `analyzer.RULES`, too.
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMPOUND = re.compile(r"[a-z0-9][A-Z]|[A-Z][A-Z][a-z]|[A-Za-z0-9]_+[A-Za-z0-9]|[A-Za-z][0-9]")
_LONGEST_WHOLE = 60

# FTS5 fixes k1 at 1.2; dividing by k1 + 1 turns tf·(k1+1)/(tf+norm) into tf/(tf+norm), whose maximum is 1.
_BM25_MAXIMUM = 2.2
_TERMS_A_STATEMENT = 12
_MERGED_PAGES = 256  # of FTS5, at once: others wait to write meanwhile


@dataclass(frozen=True, slots=True)
class ItemWords:
    """An item as full-text search sees it, without the sign of its kind."""

    title: tuple[str, ...]
    body: tuple[str, ...]
    words: tuple[str, ...]

    @classmethod
    def of(cls, title: str, text: str, words: str) -> ItemWords:
        # Wholes of identifiers stand apart: between their parts they would part phrases.
        wholes = dict.fromkeys(whole for given in (title, text, words) for whole in whole_identifiers(given))
        return cls(tuple(analyze_name(title)), tuple(analyze_name(text)), (*analyze_name(words), *wholes))

    @property
    def length(self) -> int:
        return len(self.title) + len(self.body) + len(self.words)

    @property
    def title_length(self) -> int:
        return len(set(self.title))

    def signed(self, kind: str) -> tuple[str, str, str]:
        """The three columns."""
        sign = KINDS[kind]
        title, body, words = (
            " ".join(f"{sign}.{word}" for word in each) for each in (self.title, self.body, self.words)
        )
        return title, body, words


@dataclass(frozen=True, slots=True)
class ItemTerm:
    """A question's word and how rare it is among the items of a kind."""

    word: str
    items: int  # that hold it
    idf: float  # never zero: a word of every item still says a little
    fts_idf: float  # as FTS5 has it inside its bm25(), which counts the items of all kinds


@dataclass(frozen=True, slots=True)
class WordWeights:
    """What a word counts by where it stands."""

    title: float = 1.0
    body: float = 1.0
    words: float = 1.0


def whole_identifiers(text: str) -> Iterator[str]:
    """Identifiers of several words, each as one word."""
    for match in _IDENTIFIER.finditer(text):
        name = match.group()
        if len(name) <= _LONGEST_WHOLE and _COMPOUND.search(name):
            yield stem(name.replace("_", "").lower())


def asked_words(question: str) -> list[str]:
    """The words that a question is searched by, each once."""
    return list(dict.fromkeys([*analyze_name(question), *whole_identifiers(question)]))


def item_terms(reader: Reader, kind: str, words: Sequence[str]) -> list[ItemTerm]:
    """Each distinct word with its weight; words that no item has have the highest."""
    known, sign = reader.count_cache(), KINDS[kind]
    distinct = list(dict.fromkeys(words))
    new = [f"{sign}.{word}" for word in distinct if f"{sign}.{word}" not in known]
    known.update(dict.fromkeys(new, 0))
    known.update(rows_in(reader.connection, "SELECT term, doc FROM item_vocabulary WHERE term IN", new))
    own, total = kind_state(reader, kind).count, sum(kind_state(reader, each).count for each in KINDS)
    return [_term(word, known[f"{sign}.{word}"], own, total) for word in distinct]


def score_words(
    reader: Reader, kind: str, terms: Sequence[ItemTerm], weights: WordWeights
) -> Iterator[tuple[ItemTerm, list[tuple[int, float]]]]:
    """Of each word that some item has, (item_no, share of its weight, 0 to 1) of all that have it."""
    present = [term for term in terms if term.items]
    score = f"bm25(item_words, {weights.title:.3f}, {weights.body:.3f}, {weights.words:.3f})"
    for start in range(0, len(present), _TERMS_A_STATEMENT):
        part = present[start : start + _TERMS_A_STATEMENT]
        looks = (
            f"SELECT {number} AS term, rowid, {score} FROM item_words WHERE item_words MATCH ?"
            for number in range(len(part))
        )
        found: list[list[tuple[int, float]]] = [[] for _ in part]
        values = [f'"{KINDS[kind]}.{term.word}"' for term in part]
        for number, item_no, raw in reader.connection.execute(" UNION ALL ".join(looks), values):
            # FTS5 counts better as more negative.
            found[number].append((int(item_no), min(1.0, -float(raw) / _BM25_MAXIMUM / part[number].fts_idf)))
        yield from zip(part, found, strict=True)


def titled(reader: Reader, kind: str, terms: Sequence[ItemTerm]) -> list[int]:
    """The items that have a word in their titles, once for each of these words."""
    found: list[int] = []
    present = [f'title : "{KINDS[kind]}.{term.word}"' for term in terms if term.items]
    for start in range(0, len(present), _TERMS_A_STATEMENT):
        part = present[start : start + _TERMS_A_STATEMENT]
        looks = " UNION ALL ".join("SELECT rowid FROM item_words WHERE item_words MATCH ?" for _ in part)
        found += [int(row[0]) for row in reader.connection.execute(looks, part)]
    return found


def merge_some(connection: sqlite3.Connection, *, first: bool) -> bool:
    """Deleted words stay in FTS5's segments until those are merged. Merge for a few milliseconds; the `first` time it
    begins anew. False once there is nothing left of them."""
    before = connection.total_changes
    pages = -_MERGED_PAGES if first else _MERGED_PAGES
    connection.execute("INSERT INTO item_words (item_words, rank) VALUES ('merge', ?)", (pages,))
    return connection.total_changes - before >= 2


def _term(word: str, items: int, own: int, total: int) -> ItemTerm:
    odds, fts_odds = ((count - items + 0.5) / (items + 0.5) for count in (own, total))
    return ItemTerm(word, items, math.log(1.0 + odds), max(math.log(fts_odds), 1e-6))
