"""SQLite's own: what a question points at: the document it names, documents that speak of its topic, parts of a
document by its headings, pages by their number or by the caption of a figure or table on them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from research.store.analyzer import analyze, normalize
from research.store.pages import placeholders
from research.store.reader import Repository, grouped
from research.store.words import quote

FRONT = 3
"""So many pages at the beginning may belong to the title."""

# A cover has fewer words than this; what is missing on it stands on the next page.
_COVER = 120


@dataclass(frozen=True, slots=True)
class FrontPage:
    page_id: int
    page: int
    words: int

    @property
    def has_text(self) -> bool:
        """Whether it has more text than a cover."""
        return self.words >= _COVER


# More words are a sentence, and hardly on one page.
_MOST_WORDS = 8


# Pages of a document that are looked through for a heading: its words stand on most pages of some.
_MOST_PAGES = 400
_MOST_LETTERS = 90  # of a heading
_PLAIN = 7  # the level of a line that only may be a heading: it stands alone
_MARKUP = re.compile(r"^[#>*_\s\-•]+|[*_\s:.]+$")
_NUMBER = re.compile(
    r"(?:(?:chapter|section|part|item|kapitel|teil|chapitre|capitulo|capitolo)\s+)?"
    r"(?P<number>\d{1,3}(?:\.\d{1,3}){0,4}|[ivxlc]{1,6}|[a-z](?:\.\d{1,2}){0,3})(?:[.):—–-]+\s*|\s+)"
)
# Entries of a table of contents end with a page number.
_LEADER = re.compile(r"\.\s?\.\s*\w{1,5}$|\|\s*(?:\d{1,4}|[ivxl]{1,6})\s*\|?$")
_ENTRY = re.compile(rf"{_LEADER.pattern}|\S\s+\S+\s+\d{{1,3}}$")
# "Abstract. Libraries in older schools …", "Summary: …"
_RUN_IN = re.compile(r"[#>*_\s]{0,8}(?P<title>[^\W\d_][^.:—–|]{2,30})[*_]{0,3}[.:—–]")
_YEAR = re.compile(r"\b(?:19|20)\d\d[a-z]?\b")
_LEADERS = re.compile(r"[.…·](?:\s?[.…·]){2,60}\s*\w{1,5}\b|…\s*\d{1,4}\b")  # entries that share a line
_LINES = 2_000  # of a page
_ALL_LINES = 40_000  # of a document; as many as a thousand pages of print have
_LINE = 4_000  # characters


@dataclass(frozen=True, slots=True)
class Heading:
    """A line that is a heading, or may be one."""

    page_id: int
    page: int
    level: int  # 1 to 6; 7: no more than a line that stands alone
    number: str  # "3.2", "b"; empty without one
    title: str  # folded, its number taken off


def count_years(text: str) -> int:
    """How many years a text names: references name one each."""
    return len(_YEAR.findall(text))


def count_entries(text: str) -> tuple[int, int]:
    """How many lines end as those of a table of contents do, and how many lines there are; entries that share a line
    count as lines."""
    entries = lines = 0
    for line in (line.strip() for line in text.splitlines()[:_LINES]):
        if line:
            inside = len(_LEADERS.findall(line[:_LINE]))
            entries += inside or _ENTRY.search(line[-40:]) is not None
            lines += inside or 1
    return entries, lines


def _titles(line: str) -> Iterator[tuple[int, str, str]]:
    """(level, number, title) of what may be headings in a line: two columns of a page may share one."""
    marks = len(line) - len(line.lstrip("#"))
    entry = _LEADER if marks else _ENTRY
    if not line.strip() or entry.search(line.rstrip()[-40:]):
        return
    if len(line) > _MOST_LETTERS and (run_in := _RUN_IN.match(line)):
        yield _PLAIN, "", normalize(run_in["title"]).strip("*_ ")
        return
    for cell in line.split(" | ") if len(line) <= 4 * _MOST_LETTERS else ():
        title = normalize(_MARKUP.sub("", cell)).strip()
        if title and len(title) <= _MOST_LETTERS:
            numbered = _NUMBER.match(title)
            number, bare = (numbered["number"], title[numbered.end() :].strip()) if numbered else ("", title)
            yield min(marks, 6) or _PLAIN, number, bare or title


# "Figure 1" is mentioned on many pages; among those with most mentions, the caption is seldom missing.
_MOST_MENTIONS = 100


class Lookups(Repository):
    """What a question points at."""

    def named_words(self, words: Collection[str]) -> dict[str, set[str]]:
        """doc_id → those of these words that stand in its file name or title."""
        found = grouped(self._db.rows_in("SELECT doc_id, word FROM name_words WHERE word IN", words))
        return {doc_id: set(held) for doc_id, held in found.items()}

    def front_pages(self, doc_ids: Sequence[str]) -> dict[str, list[FrontPage]]:
        """doc_id → its first pages, in order."""
        rows = self._db.execute(
            f"SELECT doc_id, page_id, page, words FROM pages WHERE doc_id IN ({placeholders(doc_ids)}) AND page <= ?"
            " ORDER BY doc_id, page",
            (*doc_ids, FRONT),
        )
        return grouped((doc_id, FrontPage(*page)) for doc_id, *page in rows)

    def words_on(self, page_ids: Collection[int], words: Iterable[str]) -> dict[int, set[str]]:
        """page_id → those of these words that stand on it."""
        found: dict[int, set[str]] = {}
        for word in words:
            rows = self._db.execute(
                f"SELECT rowid FROM page_words WHERE page_words MATCH ? AND rowid IN ({placeholders(list(page_ids))})",
                (quote(word), *page_ids),
            )
            for (page_id,) in rows:
                found.setdefault(int(page_id), set()).add(word)
        return found

    def documents_with(self, word: str, *, most: int) -> list[str]:
        """Documents that have a word on their pages; `most` are enough."""
        return self._db.column(
            "SELECT DISTINCT doc_id FROM page_words JOIN pages ON page_id = page_words.rowid"
            " WHERE page_words MATCH ? LIMIT ?",
            (quote(word), most),
        )

    def pages_with_phrase(self, phrase: str, limit: int) -> list[tuple[str, int, str]]:
        """(doc_id, page, markdown) of pages, of whatever document, that have the words of a phrase in a row."""
        words = " ".join(analyze(phrase)).replace('"', " ")
        if not words.strip():
            return []
        rows = self._db.execute(
            "SELECT rowid FROM page_words WHERE page_words MATCH ? ORDER BY rank LIMIT ?", (f'body : "{words}"', limit)
        )
        found = self._db.pages.with_text([int(row[0]) for row in rows])
        return [(page.doc_id, page.page, structure.text) for page, structure in found.values()]

    def pages_with_all(self, topic: str) -> dict[str, int]:
        """doc_id → the best of its pages that hold all words of the topic; the best document first."""
        words = list(dict.fromkeys(analyze(topic)))
        if not 0 < len(words) <= _MOST_WORDS:
            return {}
        rows = self._db.execute(
            "WITH hits AS MATERIALIZED ("
            " SELECT rowid AS page_id, bm25(page_words) AS score FROM page_words WHERE page_words MATCH ?)"
            " SELECT doc_id, page_id, MIN(score) AS best FROM hits JOIN pages USING (page_id)"
            " GROUP BY doc_id ORDER BY best, doc_id",
            (" AND ".join(map(quote, words)),),
        )
        return {str(doc_id): int(page_id) for doc_id, page_id, _ in rows}

    def headings(self, doc_id: str, names: Sequence[str]) -> list[Heading]:
        """The lines of a document, in order, that may be headings and hold one of the names."""
        phrases = [analyze(name) for name in names]
        pages = self._db.words.phrase_pages(phrases, [doc_id], limit=_MOST_PAGES)
        return list(self._headings(sorted(pages)))

    def all_headings(self, doc_id: str) -> list[Heading]:
        """All lines of a document, in order, that may be headings."""
        rows = self._db.execute("SELECT page_id FROM pages WHERE doc_id = ? ORDER BY page", (doc_id,))
        return list(self._headings([int(row[0]) for row in rows][:_MOST_PAGES]))

    def following_pages(self, page_id: int, most: int) -> list[tuple[int, str, str]]:
        """The page and up to `most` after it: (page_id, section path, markdown)."""
        rows = self._db.execute(
            "SELECT later.page_id, later.section_path FROM pages here JOIN pages later USING (doc_id)"
            " WHERE here.page_id = ? AND later.page BETWEEN here.page AND here.page + ? ORDER BY later.page",
            (page_id, most),
        )
        paths = {int(row[0]): str(row[1]) for row in rows}
        texts = dict(self._db.pages.markdowns(list(paths)))
        return [(page, path, texts[page]) for page, path in paths.items()]

    def _headings(self, page_ids: Sequence[int]) -> Iterator[Heading]:
        numbers = dict(self._db.rows_in("SELECT page_id, page FROM pages WHERE page_id IN", page_ids))
        texts = dict(self._db.pages.markdowns(page_ids))
        left = _ALL_LINES
        for page_id in sorted(texts, key=lambda each: numbers[each]):
            lines = texts[page_id].splitlines()[: min(_LINES, left)]
            left -= len(lines)
            for line in lines:
                for level, number, title in _titles(line):
                    yield Heading(page_id, numbers[page_id], level, number, title)

    def numbered_pages(self, doc_ids: Sequence[str], numbers: Sequence[int]) -> dict[int, str]:
        """page_id → doc_id of the pages with one of these numbers, physical or printed; -1 is a document's last."""
        if not numbers:
            return {}
        labels = [str(number) for number in numbers]
        wanted = placeholders(numbers)
        rows = self._db.execute(
            "SELECT page_id, doc_id FROM pages JOIN documents USING (doc_id)"
            f" WHERE doc_id IN ({placeholders(doc_ids)})"
            f" AND (page IN ({wanted}) OR label IN ({wanted}) OR page - num_pages - 1 IN ({wanted}))",
            (*doc_ids, *numbers, *labels, *numbers),
        )
        return {int(row[0]): str(row[1]) for row in rows}

    def captioned_pages(self, doc_ids: Sequence[str], kinds: Sequence[str], number: str) -> dict[int, str]:
        """page_id → doc_id of the pages with a line that is headed by one of the kinds and the number, as a caption."""
        # "Figure 2: …", "Figure 2 The …", but not a sentence that begins "Figure 2 shows …".
        name = "|".join(map(re.escape, kinds))
        caption = re.compile(
            rf"^[\W_]{{0,20}}(?i:{name})\.?\s*{re.escape(number)}(?![.\-–]?\d)[*_]*[ \t]*(?![ \ta-zà-öø-ÿа-яё])",
            re.MULTILINE,
        )
        mentions = self._db.words.phrase_pages(
            [analyze(f"{kind} {number}") for kind in kinds], doc_ids, limit=_MOST_MENTIONS
        )
        held = {page_id for page_id, text in self._db.pages.markdowns(sorted(mentions)) if caption.search(text)}
        return {page_id: doc_id for page_id, doc_id in mentions.items() if page_id in held}
