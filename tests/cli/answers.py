"""Answers made by hand, for views to be tried on: whatever a question could bring, without asking one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cli.layout import Marker
from research.models import Confidence, Coverage, Passage, Quote, ResearchContext, SourceDocument, page_link

SENTENCE = "The housing bubble burst when subprime mortgages defaulted, and the banks held too little capital. "

# Whatever moves a cursor, names a window, forges a link, turns the reading direction or breaks a line.
HOSTILE = "x\x1b]8;;http://evil/\x1b\\y\x1b[2J\x9b31m\x07\u202egnp\u2066\u2028z\r\nw\t[bold]v[/bold]\x00\ud800"


def source(filename: str = "crisis.pdf", page: int = 3, text: str = SENTENCE, **more: Any) -> SourceDocument:
    """A source with one passage, or with those given."""
    passages = more.pop("passages", [Passage(text, 0.9, section_path=more.get("section_path", ""))] if text else [])
    path = f"/docs/{filename}".encode("utf-8", "backslashreplace").decode()  # as names are stored
    return SourceDocument(
        doc_id="aaaa",
        filename=filename,
        page=page,
        extension="pdf",
        markdown_content=text,
        source_path=path,
        link=page_link(path, page),
        passages=passages,
        **more,
    )


def quote(text: str = SENTENCE.strip(), citation: int = 1) -> Quote:
    return Quote(text, citation, f"page:aaaa#{citation}", 3, 0.9, 0, len(text))


def answer(
    sources: Sequence[SourceDocument],
    quotes: Sequence[Quote] = (),
    *,
    level: str = "high",
    pages: int = 48,
    query: str = "What burst?",
    **more: Any,
) -> ResearchContext:
    shown = [f"[Document {n}: {s.filename}, Page {s.page}]\n{s.markdown_content}" for n, s in enumerate(sources, 1)]
    return ResearchContext(
        formatted_text="\n\n".join(shown),
        sources=list(sources),
        total_tokens=4_107,
        truncated=False,
        query=query,
        max_tokens=10_000,
        coverage=Coverage(pages=pages),
        quotes=list(quotes),
        confidence=Confidence(0.9, level),
        **more,
    )


def without_escapes(shown: str) -> str:
    """What a terminal showed, without colours and links."""
    return re.sub(r"\x1b\[[\d;]*m|\x1b\]8;[^\x1b]*\x1b\\", "", shown)


def marker(*words: str) -> Marker:
    """Marks these words."""
    found = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    return lambda text: [match.span() for match in found.finditer(text)] if words else []
