"""Looking up pages by what people call them: their number, or the caption of a figure or table on them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from research.store.catalog.catalog import Catalog
from research.store.catalog.pages import markdown_of, marks
from research.store.fulltext.analyzer import words
from research.store.fulltext.search import phrase_pages

# "Figure 1" is mentioned on many pages; among those with most mentions, the caption is seldom missing.
_MOST_MENTIONS = 100


def numbered_pages(catalog: Catalog, doc_ids: Sequence[str], numbers: Sequence[int]) -> dict[int, str]:
    """page_id → doc_id of the pages with one of these numbers, physical or printed; -1 is a document's last."""
    if not numbers:
        return {}
    labels = [str(number) for number in numbers]
    wanted = marks(numbers)
    rows = catalog.connection.execute(
        "SELECT page_id, doc_id FROM pages JOIN documents USING (doc_id)"
        f" WHERE doc_id IN ({marks(doc_ids)})"
        f" AND (page IN ({wanted}) OR label IN ({wanted}) OR page - num_pages - 1 IN ({wanted}))",
        (*doc_ids, *numbers, *labels, *numbers),
    )
    return {int(row[0]): str(row[1]) for row in rows}


def captioned_pages(catalog: Catalog, doc_ids: Sequence[str], kinds: Sequence[str], number: str) -> dict[int, str]:
    """page_id → doc_id of the pages with a line that is headed by one of the kinds and the number, as a caption."""
    # "Figure 2: …", "Figure 2 The …", but not a sentence that begins "Figure 2 shows …".
    name = "|".join(map(re.escape, kinds))
    caption = re.compile(
        rf"^[\W_]{{0,20}}(?i:{name})\.?\s*{re.escape(number)}(?![.\-–]?\d)[*_]*[ \t]*(?![ \ta-z])",
        re.MULTILINE,
    )
    mentions: dict[int, str] = {}
    for kind in kinds:
        mentions |= phrase_pages(catalog, words(f"{kind} {number}"), doc_ids, limit=_MOST_MENTIONS)
    held = {page_id for page_id, text in markdown_of(catalog, sorted(mentions)) if caption.search(text)}
    return {page_id: doc_id for page_id, doc_id in mentions.items() if page_id in held}
