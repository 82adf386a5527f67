"""Resources: every document, and every page of it, by an address that lasts.

ctx://doc/{id}            its table of contents
ctx://doc/{id}/page/{n}   the text of a page
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from research.errors import NothingFoundError, UsageError
from research.parameters import shown
from research.service.mcp import listing, reading
from research.service.mcp.budget import MOST_TOKENS
from research.service.mcp.tools import in_line, short_name

if TYPE_CHECKING:
    from research.index import Index

PAGE_TEMPLATE = "ctx://doc/{id}/page/{n}"
DOCUMENT_TEMPLATE = "ctx://doc/{id}"
MIME_TYPE = "text/markdown"

_PAGE_SIZE = 100
_URI = re.compile(r"ctx://doc/(?P<id>[0-9a-f]{16}|file-[0-9a-f]{16}(?:-[0-9]{1,9})?)(?:/page/(?P<page>[0-9]{1,9}))?")


@dataclass(frozen=True, slots=True)
class DocumentEntry:
    uri: str
    name: str
    title: str
    num_pages: int


def document_entries(index: Index, cursor: str) -> tuple[list[DocumentEntry], str]:
    """Some of the documents from a cursor on, and the cursor of the rest; empty if there are no more."""
    if cursor and not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise UsageError(f"{shown(cursor)} is no cursor", hint="begin without one")
    start = int(cursor or 0)
    documents = index.documents.list() if index.exists else []
    entries = [
        DocumentEntry(
            DOCUMENT_TEMPLATE.format(id=info.doc_id),
            short_name(info.filename),
            in_line(info.title),
            info.num_pages,
        )
        for info in documents[start : start + _PAGE_SIZE]
    ]
    return entries, str(start + _PAGE_SIZE) if start + _PAGE_SIZE < len(documents) else ""


def resource_text(index: Index, uri: str) -> str:
    """What stands at an address."""
    found = _URI.fullmatch(uri)
    if found is None:
        raise NothingFoundError(
            f"{shown(uri)} is no address of this server", hint=f"{PAGE_TEMPLATE}; call list_documents for the ids"
        )
    doc_id = index.documents.get(found["id"]).doc_id
    if found["page"] is not None:
        return reading.get_page(index, doc_id, page=int(found["page"]), max_tokens=MOST_TOKENS).text
    outline = listing.outline(index, doc_id, max_tokens=MOST_TOKENS).text
    return f"{outline}\n\nA page: {DOCUMENT_TEMPLATE.format(id=doc_id)}/page/1"
