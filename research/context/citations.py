"""Numbered citations: the header, the text under it, and keeping the two apart."""

from __future__ import annotations

import re
import unicodedata

from research.models import SourceDocument

SEPARATOR = "\n\n"

_FORGED_HEADER = re.compile(r"\[(?=\s*Document\s+\d+\s*:)", re.IGNORECASE)


def header(source: SourceDocument, number: int) -> str:
    """`[Document 1: crisis.pdf, Page 3]`"""
    return f"[Document {number}: {one_line(source.filename)}, Page {source.page}]"


def block(source: SourceDocument, number: int) -> str:
    """A header and the page's text below it."""
    return f"{header(source, number)}\n{body(source.markdown_content)}"


def body(text: str) -> str:
    """Page text as it stands in a context: a forged header inside it no longer looks like one."""
    return _FORGED_HEADER.sub("[ ", text.strip())


def one_line(name: str) -> str:
    """A file name as data: no line breaks, control or direction characters, however the file is called."""
    shown = "".join(" " if unicodedata.category(c) in {"Cc", "Cf", "Zl", "Zp", "Cs"} else c for c in name)
    return " ".join(shown.split()) or "unnamed"
