"""Which drafts are headings, and of which level: from the outline where it names them, else by their font."""

from __future__ import annotations

import re

from ingest.pdf.document_stats import Fonts
from ingest.pdf.outline import OutlineEntry, fold
from ingest.pdf.paragraphs import Draft

_NUMBER = re.compile(
    r"(?:\d{1,3}(?:\.\d{1,3})*\.?|[A-Z]\.(?:\d+\.?)*|[IVX]{1,5}\.|"
    r"(?:Chapter|Section|Part|PART|Item|ITEM|Note|NOTE|Appendix|Article|Annex|Exhibit|Figure|Table)\s+[\dA-Z][\w.]*)\s+\S"
)
_LEADING_NUMBER = re.compile(r"[\d.]+\s*|[A-Z]\.\s+")
_MAX_CHARACTERS = 160


def heading_levels(drafts: list[Draft], fonts: Fonts, entries: list[OutlineEntry]) -> dict[int, int]:
    """Levels of the drafts that are headings, by their index."""
    levels: dict[int, int] = {}
    by_font: dict[int, int] = {}  # their lengths
    wanted = {fold(entry.title): entry.level for entry in entries}
    for index, draft in enumerate(drafts):
        if draft.kind in ("table", "code") or len(draft.rows) > 4:
            continue
        level = _toc_level(draft.text, wanted)
        if level == 0 and is_heading(draft, fonts):
            level = fonts.level(draft.rows[0].size)
            by_font[index] = len(draft.text)
        if level:
            levels[index] = level
    # A page set in a large font throughout holds text, not headings; only its short lines may stay.
    if len(by_font) > 3 and sum(by_font.values()) > 0.6 * sum(len(draft.text) for draft in drafts):
        for index, length in by_font.items():
            if length > 60:
                del levels[index]
    return levels


def _toc_level(text: str, wanted: dict[str, int]) -> int:
    if not wanted or len(text) > 300:
        return 0
    folded = fold(text)
    bare = fold(_LEADING_NUMBER.sub("", text, count=1))
    for title, level in wanted.items():
        if title and (
            folded == title
            or (len(bare) > 1 and (bare == title or (title.endswith(bare) and len(bare) > 0.7 * len(title))))
        ):
            return level
    return 0


def is_heading(draft: Draft, fonts: Fonts) -> bool:
    """Whether a draft's font alone makes it a heading."""
    if not _could_be(draft, fonts):
        return False
    text, row = draft.text, draft.rows[0]
    words = len(text.split())
    ratio = row.size / max(fonts.body, 0.1)
    if ratio >= 1.15:
        return not (text.endswith(".") and words > 8)
    if text[-1] in ".:" or text[0].islower() or words > 15:
        return False
    apart = draft.space_above >= 0.35
    if ratio >= 1.08:
        return row.bold or apart or bool(_NUMBER.match(text))
    return ratio >= 0.95 and row.bold and apart and words <= 12 and len(draft.rows) <= 2


def _could_be(draft: Draft, fonts: Fonts) -> bool:
    """What every heading must have, whatever its font: few words, letters, one cell, upright, not code."""
    text, row = draft.text, draft.rows[0]
    if (draft.kind == "list" and not _NUMBER.match(text)) or (row.mono and fonts.code):
        return False
    if len(row.cells) > 1 or not row.lines[0].upright or len(text) > _MAX_CHARACTERS or len(draft.rows) > 3:
        return False
    named = _LEADING_NUMBER.sub("", text, count=1)
    letters = sum(map(str.isalpha, named))
    return letters >= 2 and letters >= 0.5 * len(named.replace(" ", "")) and text[-1] not in ",;"
