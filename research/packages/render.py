"""How the sources of a package stand in its content: under a numbered header each, as pages do in a context."""

from __future__ import annotations

from research.context.injection.headers import neutralize_headers
from research.context.render.cited import one_line
from research.models import Item, page_link


class CitedSources:
    """`[Document 1: crisis.pdf, Page 3]`, `[Document 2: memory, decision]` above each text."""

    separator = "\n\n"

    def header(self, item: Item, number: int) -> str:
        if item.ref.kind == "page":
            return f"[Document {number}: {one_line(str(item.metadata.get('filename', '')))}, Page {item.ref.part}]"
        return f"[Document {number}: {item.ref.kind}, {one_line(item.title or item.ref.key)}]"

    def body(self, text: str) -> str:
        return neutralize_headers(text.strip())


def link_of(item: Item) -> str:
    """What opens the whole of it: a file at its page, or the ref, which `ctx show`, `ctx recall` and others take."""
    if item.ref.kind == "page":
        return page_link(str(item.metadata.get("source_path", "")), int(item.ref.part))
    return str(item.ref)
