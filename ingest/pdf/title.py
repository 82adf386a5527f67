"""A document's title: its metadata where they name it, else the largest words on its first page."""

from __future__ import annotations

import re
from typing import Any

from ingest.pdf.cleaning import clean_text
from ingest.pdf.hyphens import join_lines
from ingest.pdf.lines import Line, RawPage
from ingest.pdf.mupdf import MupdfError, mupdf_errors

_MAX_LENGTH = 150
# Titles that programs write by themselves: their own name, a file's name, a placeholder.
_NO_TITLE = re.compile(
    r"(?:microsoft (?:office )?(?:word|powerpoint|excel)\b.*|untitled.*|unknown|title|none|null|print|cover|index"
    r"|(?:unbenannt|ohne titel|sans titre|sin t[íi]tulo|senza titolo|sem t[íi]tulo|naamloos|无标题|無題|名称未設定).*"
    r"|(?:dokument|documento|présentation|präsentation|presentación|presentazione|book|mappe|classeur)\s*\d*"
    r"|(?:table of )?contents|(?:new )?document\s*\d*|presentation\s*\d*|powerpoint[ -]presentation"
    r"|(?:slide|page|layout) \d+|.*[\\/].*\.\w{2,5}|[^ ]+\.[a-z]{2,5}|[\W\d_]*|[0-9a-f-]{16,}"
    r"|.*\.(?:docx?|pptx?|xlsx?|pdf|indd|qxd|html?|tex|dvi|ps|eps|fm|pmd|pub|rtf|txt|ai|cdr|psd))",
    re.IGNORECASE,
)


def metadata_title(document: Any) -> str:
    """The title of the metadata, or nothing where it says nothing."""
    try:
        with mupdf_errors():
            metadata = document.metadata or {}
    except MupdfError:
        return ""
    title = clean_text(str(metadata.get("title") or "")[:500])
    readable = len(title) >= 3 and "\ufffd" not in title and not _NO_TITLE.fullmatch(title)
    return title[:_MAX_LENGTH] if readable else ""


def largest_text(page: RawPage) -> str:
    """The largest words of a page, if they are few enough to be a title and larger than the rest."""
    lines = [ln for ln in page.lines if ln.upright and sum(map(str.isalpha, ln.text)) > 1]
    if not lines:
        return ""
    size = max(line.size for line in lines)
    first = next(i for i, line in enumerate(lines) if line.size > 0.95 * size)
    run: list[Line] = []
    for line in lines[first:]:
        if line.size <= 0.95 * size:
            break
        run.append(line)
    if len(run) == len(lines) > 2:
        return ""  # one size throughout says nothing
    title = join_lines(line.text.strip() for line in run)
    return title if 3 <= len(title) <= _MAX_LENGTH and not _NO_TITLE.fullmatch(title) else ""
