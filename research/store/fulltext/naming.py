"""SQLite's own: what tells which document a question means."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from research.store.catalog.pages import batched, get_pages_with_text, placeholders
from research.store.catalog.reader import Reader
from research.store.fulltext.analyzer import analyze

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


def named_words(reader: Reader, words: Collection[str]) -> dict[str, set[str]]:
    """doc_id → those of these words that stand in its file name or title."""
    found: dict[str, set[str]] = {}
    for part in batched(list(words)):
        query = f"SELECT doc_id, word FROM name_words WHERE word IN ({placeholders(part)})"
        for doc_id, word in reader.connection.execute(query, part):
            found.setdefault(str(doc_id), set()).add(str(word))
    return found


def front_pages(reader: Reader, doc_ids: Sequence[str]) -> dict[str, list[FrontPage]]:
    """doc_id → its first pages, in order."""
    rows = reader.connection.execute(
        f"SELECT doc_id, page_id, page, words FROM pages WHERE doc_id IN ({placeholders(doc_ids)}) AND page <= ?"
        " ORDER BY doc_id, page",
        (*doc_ids, FRONT),
    )
    found: dict[str, list[FrontPage]] = {}
    for doc_id, page_id, page, words in rows:
        found.setdefault(str(doc_id), []).append(FrontPage(int(page_id), int(page), int(words)))
    return found


def words_on(reader: Reader, page_ids: Collection[int], words: Iterable[str]) -> dict[int, set[str]]:
    """page_id → those of these words that stand on it."""
    found: dict[int, set[str]] = {}
    for word in words:
        rows = reader.connection.execute(
            f"SELECT rowid FROM page_words WHERE page_words MATCH ? AND rowid IN ({placeholders(list(page_ids))})",
            ('"' + word.replace('"', '""') + '"', *page_ids),
        )
        for (page_id,) in rows:
            found.setdefault(int(page_id), set()).add(word)
    return found


def documents_with(reader: Reader, word: str, *, most: int) -> list[str]:
    """Documents that have a word on their pages; `most` are enough."""
    rows = reader.connection.execute(
        "SELECT DISTINCT doc_id FROM page_words JOIN pages ON page_id = page_words.rowid"
        " WHERE page_words MATCH ? LIMIT ?",
        ('"' + word.replace('"', '""') + '"', most),
    )
    return [str(row[0]) for row in rows]


def pages_with_phrase(reader: Reader, phrase: str, limit: int) -> list[tuple[str, int, str]]:
    """(doc_id, page, markdown) of pages, of whatever document, that have the words of a phrase in a row."""
    words = " ".join(analyze(phrase)).replace('"', " ")
    if not words.strip():
        return []
    rows = reader.connection.execute(
        "SELECT rowid FROM page_words WHERE page_words MATCH ? ORDER BY rank LIMIT ?", (f'body : "{words}"', limit)
    )
    found = get_pages_with_text(reader, [int(row[0]) for row in rows])
    return [(page.doc_id, page.page, structure.text) for page, structure in found.values()]
