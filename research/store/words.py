"""SQLite's own: full-text search over pages, term statistics and BM25 scores from FTS5; and what it holds of pages and
of documents' names, kept with them.

Every function is part of the caller's transaction. Words are analysed before it begins (`PageWords.of`): that takes
most of the time, and short writes wait for a transaction to end.


SQLite's own: what full-text search holds of items, kept with them, and BM25 scores from FTS5.

Identifiers are words, too: `parseHttpDate` and `parse_http_date` both stand for parse, http and date, and for
themselves as a whole, so each finds the others and what they say in plain words.

Items of all kinds share one table. A word has the sign of its kind before it (`c.pars`), so that a word is as rare as
it is among the items of a kind, whatever else is in the index.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from research.store import analyzer
from research.store.analyzer import analyze, analyze_name, letters, name_parts, stem
from research.store.pages import placeholders
from research.store.reader import Repository, grouped

# FTS5 fixes k1 at 1.2; dividing by k1 + 1 turns tf·(k1+1)/(tf+norm) into tf/(tf+norm), whose maximum is 1.
_BM25_MAXIMUM = 2.2
_SCORE = "bm25(page_words, 1.0, 1.0)"
# Words on more pages than this cost most of the time and decide least; and how many such hits make it worth while to
# look at the other pages first.
_RARE_SHARE = 0.2
_WORTH_PRUNING = 10
_FEW_HITS = 5000  # of all words together, which are scored word by word at once
_MOST_KEPT = 30_000  # hits of words that are kept for the next questions
_ORDER = 0.01  # of a floor: enough to tell its pages apart
_MOST_PAIR_PAGES = 1000  # whose pairs are scored at once; few questions have more
_TERMS_A_STATEMENT = 12


Floors = dict[str, dict[int, float]]
"""word → page_id → the least share of its weight that the word counts there."""

ByWord = dict[str, tuple[set[int] | None, dict[int, float]]]
"""word → the pages that were looked at, None for all, and what the word scores on those that hold it."""


@dataclass(frozen=True, slots=True)
class Term:
    """A question word and how rare it is among the pages."""

    word: str
    pages: int  # that hold it
    share: float  # of all pages
    idf: float  # never zero: a word of every page still says a little
    fts_idf: float  # as FTS5 has it inside its bm25(), where a word of most pages counts nothing


ANALYZER = "analyzer"  # its key in meta


def _share(score: float) -> float:
    # FTS5 counts better as more negative.
    return -float(score) / _BM25_MAXIMUM


def _pairs(words: Sequence[str]) -> str:
    """The expression for pages with two of the words side by side."""
    return " OR ".join(quote(f"{a} {b}") for a, b in dict.fromkeys(pairwise(words)))


def _any(terms: Sequence[Term]) -> str:
    """The expression for pages with any of the words."""
    return " OR ".join(quote(term.word) for term in terms)


def quote(text: str) -> str:
    """A string FTS5 takes as words, never as operators."""
    return '"' + text.replace('"', '""') + '"'


def _term(word: str, total: int, pages: int) -> Term:
    odds = (total - pages + 0.5) / (pages + 0.5)
    return Term(word, pages, pages / max(1, total), idf=_idf(odds), fts_idf=max(math.log(odds), 1e-6))


def _idf(odds: float) -> float:
    return math.log(1.0 + odds)


@dataclass(frozen=True, slots=True)
class PageWords:
    """A page as full-text search sees it."""

    body: str
    section: str
    count: int  # words of the body

    @property
    def columns(self) -> tuple[str, str]:
        return self.body, self.section

    @classmethod
    def of(cls, markdown: str, section_path: str) -> PageWords:
        body = analyze(markdown)
        return cls(" ".join(body), " ".join(analyze(section_path)), len(body))


_COLUMNS = {"page_words": ("body", "section"), "item_words": ("title", "body", "words")}


def columns_of(table: str) -> str:
    """The columns of a table of words, in order."""
    return ", ".join(_COLUMNS[table])


def words_of_name(filename: str, title: str) -> set[str]:
    stem = filename.rsplit(".", 1)[0]
    # BestBuy_2023 answers to "best buy" and to "bestbuy".
    return {*analyze_name(stem), *analyze(stem.replace("_", " ")), *analyze(title)}


class _WordSearch(Repository):
    def _looks(self, look: str, values: Sequence[Sequence[Any]]) -> Iterator[tuple[int, Any]]:
        """The rows of a SELECT for each of the values, with the place of the value: a dozen in one statement."""
        for start in range(0, len(values), _TERMS_A_STATEMENT):
            part = values[start : start + _TERMS_A_STATEMENT]
            looks = " UNION ALL ".join(look.format(start + place) for place in range(len(part)))
            for place, *row in self._db.execute(looks, [value for each in part for value in each]):
                yield place, row


class PageSearch(_WordSearch):
    """Full-text search over pages, and the words of their documents' names."""

    def is_outdated(self) -> bool:
        """Whether the pages were analysed by other rules than questions are: some words are then not found."""
        return self._db.meta(ANALYZER) != analyzer.version()

    def statistics(self, words: Sequence[str]) -> list[Term]:
        """Each distinct word with its weight; words on no page have the highest."""
        distinct = list(dict.fromkeys(words))
        total, known = self._db.pages.totals().pages, self._db.count_cache()
        new = [word for word in distinct if ("pages with", word) not in known]
        known.update({("pages with", word): 0 for word in new})
        rows = self._db.rows_in("SELECT term, doc FROM page_vocabulary WHERE term IN", new)
        known.update({("pages with", word): int(count) for word, count in rows})
        return [_term(word, total, known["pages with", word]) for word in distinct]

    def _scored(self, words: Sequence[str]) -> dict[str, dict[int, float]]:
        """Each word with what it scores on its pages. Questions to one index have words in common: some are kept."""
        cache = self._db.count_cache()
        kept: dict[str, dict[int, float]] = cache.setdefault("scored", {})
        new = [word for word in words if word not in kept]
        if new and sum(map(len, list(kept.values()))) > _MOST_KEPT:
            kept = cache["scored"] = {}  # another one, because other threads may be reading this
            new = list(words)
        kept.update(zip(new, self._score_pages([quote(word) for word in new]), strict=True))
        return {word: kept[word] for word in words}

    def find(self, terms: Sequence[Term], *, limit: int, known: ByWord | None = None) -> set[int]:
        """The best `limit` pages that hold any of the words, by FTS5's own ranking. `known` is added to, where words
        were scored on all of their pages."""
        present = [term for term in terms if term.pages]
        if sum(term.pages for term in present) <= _FEW_HITS:
            sums: dict[int, float] = {}
            for word, found in self._scored([term.word for term in present]).items():
                if known is not None:
                    known[word] = None, found
                for page_id, score in found.items():
                    sums[page_id] = sums.get(page_id, 0.0) + score
            return set(sorted(sums, key=lambda page_id: (-sums[page_id], page_id))[:limit])
        rare = [term for term in present if term.share <= _RARE_SHARE]
        most_common = sum(term.pages for term in present) - sum(term.pages for term in rare)
        if rare and most_common > _WORTH_PRUNING * limit:
            found = self._best(_any(present), limit, _any(rare))
            # A page with none of the rare words scores less than this; if the last of the found is better, none is
            # missing.
            bound = sum(term.fts_idf for term in present if term.share > _RARE_SHARE)
            if len(found) == limit and min(found.values()) > bound:
                return set(found)
        return set(self._best(_any(present), limit))

    def score(
        self, terms: Sequence[Term], page_ids: Sequence[int], floors: Floors | None = None, known: ByWord | None = None
    ) -> dict[int, float]:
        """page_id → BM25 of the words with the weights of `terms`; at most the sum of their idf. `known` is read and
        added to: a word that was scored on these pages is not looked for again."""
        scores: dict[int, float] = {}
        known = {} if known is None else known
        present, wanted = [term for term in terms if term.pages], set(page_ids)
        looked_at = {word: pages for word, (pages, _) in known.items()}
        new = [
            term.word
            for term in present
            if (pages := looked_at.get(term.word, set())) is not None and not (pages and wanted <= pages)
        ]
        # Word by word, so that FTS5's own weight can be divided out and ours put in.
        for word, found in zip(new, self._score_pages([quote(word) for word in new], page_ids), strict=True):
            known[word] = wanted, found
        for term in present:
            least, found = (floors or {}).get(term.word, {}), known[term.word][1]
            for page_id, score in found.items():
                if page_id not in wanted:
                    continue
                share = min(1.0, score / term.fts_idf)
                if least:  # what lies below its floor keeps its order there
                    share = max(share, least.get(page_id, 0.0) * (1.0 - _ORDER + _ORDER * share))
                scores[page_id] = scores.get(page_id, 0.0) + share * term.idf
        return scores

    def few_pages(self, phrases: Sequence[Sequence[str]], *, most: int) -> list[list[int]]:
        """Of each phrase the pages where its words stand in a row; none if those are more than `most`."""
        look = "SELECT {} AS phrase, rowid FROM (SELECT rowid FROM page_words WHERE page_words MATCH ? LIMIT ?)"
        found: list[list[int]] = [[] for _ in phrases]
        for place, [page_id] in self._looks(look, [(quote(" ".join(words)), most + 1) for words in phrases]):
            found[place].append(page_id)
        return [pages if len(pages) <= most else [] for pages in found]

    def find_pairs(self, words: Sequence[str], *, limit: int) -> tuple[dict[int, float], bool]:
        """page_id → BM25 of adjacent word pairs, best first, and whether these are all pages with any. More than
        `limit` come where that is no trouble."""
        limit = max(limit, _MOST_PAIR_PAGES)
        found = self._best(_pairs(words), limit)
        return found, len(found) < limit

    def score_pairs(self, words: Sequence[str], page_ids: Sequence[int]) -> dict[int, float]:
        """The same of these pages."""
        pairs = _pairs(words)
        return self._score_pages([pairs], page_ids)[0] if pairs else {}

    def phrase_pages(self, phrases: Iterable[Sequence[str]], doc_ids: Sequence[str], *, limit: int) -> dict[int, str]:
        """page_id → doc_id of the pages of these documents where the words of a phrase stand in a row, the best
        `limit`."""
        expression = " OR ".join(quote(" ".join(phrase)) for phrase in phrases if phrase)
        if not expression:
            return {}
        rows = self._db.execute(
            "SELECT page_id, doc_id FROM page_words JOIN pages ON page_id = page_words.rowid"
            f" WHERE page_words MATCH ? AND doc_id IN ({placeholders(doc_ids)}) ORDER BY rank LIMIT ?",
            (expression, *doc_ids, limit),
        )
        return {int(row[0]): str(row[1]) for row in rows}

    def documents_holding(self, doc_ids: Sequence[str], groups: Iterable[Sequence[str]]) -> set[str]:
        """Those of these documents that have a page with all phrases of one of the groups."""
        pages = [" AND ".join(quote(" ".join(analyze(phrase))) for phrase in group) for group in groups]
        rows = self._db.execute(
            "SELECT DISTINCT doc_id FROM page_words JOIN pages ON page_id = page_words.rowid"
            # The plus: words first. A search begun for each page of one document takes fifty times as long.
            f" WHERE page_words MATCH ? AND +doc_id IN ({placeholders(doc_ids)})",
            (" OR ".join(f"({page})" for page in pages), *doc_ids),
        )
        return {str(row[0]) for row in rows}

    def unknown(self, question: str) -> list[str]:
        """The words of a question, as it writes them, that stand on no page and in no name."""
        missing = {term.word for term in self.statistics(analyze(question)) if not term.pages}
        if not missing:
            return []
        named = self._db.rows_in("SELECT DISTINCT word FROM name_words WHERE word IN", sorted(missing))
        missing -= {str(row[0]) for row in named}
        written = dict.fromkeys(letters(question))
        return [word for word in written if len(stems := analyze(word)) == 1 and stems[0] in missing]

    def name_stems(self, first: str) -> list[str]:
        """The words of file names and titles that begin with a letter, as stems."""
        return self._db.column(
            "SELECT DISTINCT word FROM name_words WHERE word >= ? AND word < ?", (first, chr(ord(first) + 1))
        )

    def written_names(self, stem: str, *, documents: int) -> set[str]:
        """A word of file names and titles as some of these write it."""
        rows = self._db.execute(
            "SELECT filename, title FROM name_words JOIN documents USING (doc_id) WHERE word = ? LIMIT ?",
            (stem, documents),
        )
        parts = {part for row in rows for name in row for part in name_parts(name)}
        return {part for part in parts if analyze(part) == [stem]}

    def share_of_named(self, stem: str) -> float:
        """How much of the pages with a word belong to documents that have it in their names; 1 if it is on no page."""
        query = (
            "SELECT CAST(COALESCE(SUM(doc_id IN (SELECT doc_id FROM name_words WHERE word = ?)), 0) AS REAL) / COUNT(*)"
            " FROM page_words JOIN pages ON page_id = page_words.rowid WHERE page_words MATCH ?"
        )
        share = self._db.cached(("share of named", stem), lambda: self._db.value(query, (stem, quote(stem))))
        return 1.0 if share is None else float(share)

    def name_matches(self, words: Sequence[str]) -> dict[str, float]:
        """doc_id → summed idf (among documents) of the words found in its file name."""
        total = self._db.pages.totals().documents
        holders = grouped(self._db.rows_in("SELECT word, doc_id FROM name_words WHERE word IN", words))
        scores: dict[str, float] = {}
        for doc_ids in holders.values():
            idf = _idf((total - len(doc_ids) + 0.5) / (len(doc_ids) + 0.5))
            for doc_id in doc_ids:
                scores[doc_id] = scores.get(doc_id, 0.0) + idf
        return scores

    def _best(self, expression: str, limit: int, holding: str = "") -> dict[int, float]:
        """The best `limit` pages of an expression; `holding`: only those that match this other one, too."""
        if not expression:
            return {}
        among = " AND +rowid IN (SELECT rowid FROM page_words WHERE page_words MATCH ?)" if holding else ""
        rows = self._db.execute(
            f"SELECT rowid, {_SCORE} AS score FROM page_words WHERE page_words MATCH ?{among}"
            " ORDER BY score, rowid LIMIT ?",
            (expression, *([holding] if holding else []), limit),
        )
        return {int(page_id): _share(score) for page_id, score in rows}

    def _score_pages(self, expressions: Sequence[str], page_ids: Sequence[int] | None = None) -> list[dict[int, float]]:
        """Of each expression those of these pages that match it; without pages all."""
        found: list[dict[int, float]] = [{} for _ in expressions]
        # As JSON the pages are one value for all expressions: a list in the statement takes longer to read than to
        # search.
        among = "" if page_ids is None else " AND +rowid IN (SELECT value FROM json_each(?1))"
        pages = str(list(page_ids or ()))
        for start in range(0, len(expressions), _TERMS_A_STATEMENT):
            part = expressions[start : start + _TERMS_A_STATEMENT]
            looks = (
                f"SELECT {start + number} AS expression, rowid, {_SCORE} FROM page_words"
                f" WHERE page_words MATCH ?{number + 2}{among}"
                for number in range(len(part))
            )
            for expression, page_id, score in self._db.execute(" UNION ALL ".join(looks), (pages, *part)):
                found[expression][int(page_id)] = _share(score)
        return found

    def write(self, table: str, rows: Iterable[tuple[int, Sequence[str]]]) -> None:
        """Write the words of pages (`page_words`) or items (`item_words`) that have none, by their numbers."""
        columns = f"rowid, {columns_of(table)}"
        self._db.put_rows(table, columns, ((number, *words) for number, words in rows))

    def forget(self, table: str, numbers: Iterable[int]) -> None:
        self._db.executemany(f"DELETE FROM {table} WHERE rowid = ?", ((number,) for number in numbers))

    def forget_document(self, doc_id: str) -> None:
        """All its pages; before they are deleted."""
        self._db.execute(
            "DELETE FROM page_words WHERE rowid IN (SELECT page_id FROM pages WHERE doc_id = ?)", (doc_id,)
        )

    def index_name(self, doc_id: str, filename: str, title: str) -> None:
        """The words a document can be called by, in place of those it had."""
        self._db.execute("DELETE FROM name_words WHERE doc_id = ?", (doc_id,))
        words = sorted(words_of_name(filename, title))
        self._db.put_rows("name_words", "word, doc_id", [(word, doc_id) for word in words])


KINDS: Mapping[str, str] = {"code": "c", "commit": "h", "experience": "e", "value": "v"}
"""Every kind of items, with the sign that its words have in full-text search."""

# Whoever changes what words an item has raises `analyzer.RULES`, too.
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMPOUND = re.compile(r"[a-z0-9][A-Z]|[A-Z][A-Z][a-z]|[A-Za-z0-9]_+[A-Za-z0-9]|[A-Za-z][0-9]")
_LONGEST_WHOLE = 60

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


def _item_term(word: str, items: int, own: int, total: int) -> ItemTerm:
    odds, fts_odds = ((count - items + 0.5) / (items + 0.5) for count in (own, total))
    return ItemTerm(word, items, math.log(1.0 + odds), max(math.log(fts_odds), 1e-6))


class ItemSearch(_WordSearch):
    """Full-text search over items. Identifiers are words, too, and a word is as rare as among the items of a kind."""

    def terms(self, kind: str, words: Sequence[str]) -> list[ItemTerm]:
        """Each distinct word with its weight; words that no item has have the highest."""
        known, sign = self._db.count_cache(), KINDS[kind]
        distinct = list(dict.fromkeys(words))
        new = [f"{sign}.{word}" for word in distinct if f"{sign}.{word}" not in known]
        known.update(dict.fromkeys(new, 0))
        known.update(self._db.rows_in("SELECT term, doc FROM item_vocabulary WHERE term IN", new))
        own, total = self._db.items.state(kind).count, sum(self._db.items.state(each).count for each in KINDS)
        return [_item_term(word, known[f"{sign}.{word}"], own, total) for word in distinct]

    def score(
        self, kind: str, terms: Sequence[ItemTerm], weights: WordWeights
    ) -> Iterable[tuple[ItemTerm, list[tuple[int, float]]]]:
        """Of each word that some item has, (item_no, share of its weight, 0 to 1) of all that have it."""
        present = [term for term in terms if term.items]
        score = f"bm25(item_words, {weights.title:.3f}, {weights.body:.3f}, {weights.words:.3f})"
        look = "SELECT {} AS term, rowid, " + score + " FROM item_words WHERE item_words MATCH ?"
        found: list[list[tuple[int, float]]] = [[] for _ in present]
        for place, [item_no, raw] in self._looks(look, [(f'"{KINDS[kind]}.{term.word}"',) for term in present]):
            found[place].append((item_no, min(1.0, _share(raw) / present[place].fts_idf)))
        return zip(present, found, strict=True)

    def titled(self, kind: str, terms: Sequence[ItemTerm]) -> list[int]:
        """The items that have a word in their titles, once for each of these words."""
        present = [(f'title : "{KINDS[kind]}.{term.word}"',) for term in terms if term.items]
        look = "SELECT {} AS term, rowid FROM item_words WHERE item_words MATCH ?"
        return [item_no for _, [item_no] in self._looks(look, present)]

    def merge_some(self, *, first: bool) -> bool:
        """Deleted words stay in FTS5's segments until those are merged. Merge for a few milliseconds; the `first` time
        it begins anew. False once there is nothing left of them."""
        before = self._changes()
        pages = -_MERGED_PAGES if first else _MERGED_PAGES
        self._db.execute("INSERT INTO item_words (item_words, rank) VALUES ('merge', ?)", (pages,))
        return self._changes() - before >= 2

    def _changes(self) -> int:
        return int(self._db.value("SELECT total_changes()"))
