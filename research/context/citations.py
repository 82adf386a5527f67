"""Numbered citations: the header, the text under it, and keeping the two apart."""

from __future__ import annotations

import unicodedata

from research.context.forgery import disarm, disarm_name
from research.models import SourceDocument

SEPARATOR = "\n\n"
_JOINERS = "\u200c\u200d"  # Persian names and emoji are spelt with them


def header(source: SourceDocument, number: int) -> str:
    """`[Document 1: crisis.pdf, Page 3]`"""
    return f"[Document {number}: {one_line(source.filename)}, Page {source.page}]"


def block(source: SourceDocument, number: int) -> str:
    """A header and the page's text below it."""
    return f"{header(source, number)}\n{body(source.markdown_content)}"


def body(text: str) -> str:
    """Page text as it stands in a context: a forged header inside it no longer looks like one."""
    return disarm(text.strip())


def one_line(name: str) -> str:
    """A file name as data: no line breaks, control or direction characters, nothing that ends or opens a header."""
    shown = name if name.isascii() and name.isprintable() else "".join(map(_visible, name))
    return disarm_name(shown) if shown.strip() else "unnamed"


def _visible(character: str) -> str:
    hidden = unicodedata.category(character) in {"Cc", "Cf", "Zl", "Zp", "Cs"} and character not in _JOINERS
    return " " if hidden else character
