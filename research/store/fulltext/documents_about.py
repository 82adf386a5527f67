"""SQLite's own: which documents speak of a topic, and on which page most."""

from __future__ import annotations

from research.store.catalog.reader import Reader
from research.store.fulltext.analyzer import analyze

# More words are a sentence, and hardly on one page.
_MOST_WORDS = 8


def pages_with_all(reader: Reader, topic: str) -> dict[str, int]:
    """doc_id → the best of its pages that hold all words of the topic; the best document first."""
    words = list(dict.fromkeys(analyze(topic)))
    if not 0 < len(words) <= _MOST_WORDS:
        return {}
    rows = reader.connection.execute(
        "WITH hits AS MATERIALIZED ("
        " SELECT rowid AS page_id, bm25(page_words) AS score FROM page_words WHERE page_words MATCH ?)"
        " SELECT doc_id, page_id, MIN(score) AS best FROM hits JOIN pages USING (page_id)"
        " GROUP BY doc_id ORDER BY best, doc_id",
        (" AND ".join('"' + word.replace('"', '""') + '"' for word in words),),
    )
    return {str(doc_id): int(page_id) for doc_id, page_id, _ in rows}
