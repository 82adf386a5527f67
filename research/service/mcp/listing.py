"""list_documents and outline: what there is, and where in a document it stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from research.service.mcp.budget import Budget, Reply, TextIn, longest
from research.service.mcp.tools import in_line, short_name

if TYPE_CHECKING:
    from research.index import Index
    from research.records import DocumentInfo


def list_documents(
    index: Index,
    *,
    name: str | None = None,
    tags: Sequence[str] = (),
    limit: int = 50,
    offset: int = 0,
    max_tokens: int = 2000,
    text_in: TextIn = "content",
) -> Reply:
    """Documents by file name: those whose name or title has all the words, and that have all the tags."""
    tagged: dict[str, list[str]] = {}
    for tag, documents in index.documents.all_tags().items():
        for info in documents:
            tagged.setdefault(info.doc_id, []).append(tag)
    chosen = [info for info in index.documents.list() if _fits(info, tagged.get(info.doc_id, []), name or "", tags)]
    shown = chosen[offset : offset + limit]

    def render(count: int) -> Reply:
        following = offset + count if offset + count < len(chosen) else None
        notes = [f"{len(chosen)} documents{' fit' if name or tags else ''}; {_which(offset, count)}."]
        if not chosen and (name or tags):
            notes = ["No document fits. Leave name and tags out to see all of them, or use search for what they say."]
        if following is not None:
            notes.append(f"Truncated: go on with offset={following}.")
        lines = [_document_line(info, tagged.get(info.doc_id, [])) for info in shown[:count]]
        fields: dict[str, Any] = {
            "documents": [
                {"doc_id": info.doc_id, "filename": info.filename, "num_pages": info.num_pages}
                for info in shown[:count]
            ],
            "total": len(chosen),
            "truncated": following is not None,
        }
        return Reply("\n".join([*notes, *lines]), fields if following is None else {**fields, "next_offset": following})

    return longest(render, len(shown), Budget(max_tokens, text_in))


def outline(
    index: Index,
    document: str,
    *,
    depth: int | None = None,
    offset: int = 0,
    max_tokens: int = 2000,
    text_in: TextIn = "content",
) -> Reply:
    """A document's headings with their pages; how its pages begin, if it has none."""
    found = index.documents.outline(document).down_to(depth)
    info = found.document
    entries = [(entry.level, entry.page, entry.title) for entry in found.entries]
    entries += [(1, page.page, page.text) for page in found.pages]

    def render(count: int) -> Reply:
        following = offset + count if offset + count < len(entries) else None
        notes = [f"{short_name(info.filename)}, {info.num_pages} pages | {info.doc_id}"]
        if found.pages:
            notes.append("It has no headings; this is how its pages begin.")
        if following is not None:
            notes.append(f"Truncated: go on with offset={following}, or ask for a smaller depth.")
        lines = [
            f"{'  ' * (level - 1)}{in_line(title, begins_line=True)} (page {page})"
            for level, page, title in entries[offset : offset + count]
        ]
        fields: dict[str, Any] = {
            "doc_id": info.doc_id,
            "filename": info.filename,
            "num_pages": info.num_pages,
            "entries": len(entries),
            "truncated": following is not None,
        }
        text = "\n".join(notes) + "\n\n" + "\n".join(lines)
        return Reply(text, fields if following is None else {**fields, "next_offset": following})

    return longest(render, max(0, len(entries) - offset), Budget(max_tokens, text_in))


def _fits(info: DocumentInfo, tags_of: Sequence[str], words: str, tags: Sequence[str]) -> bool:
    names = f"{info.filename} {info.title} {info.doc_id}".casefold()
    folded = {tag.casefold() for tag in tags_of}
    return all(word in names for word in words.casefold().split()) and all(tag.casefold() in folded for tag in tags)


def _which(offset: int, count: int) -> str:
    return f"these are {offset + 1} to {offset + count}" if count else "none of them is shown"


def _document_line(info: DocumentInfo, tags: Sequence[str]) -> str:
    title = in_line(info.title)
    said = f"{info.doc_id} {short_name(info.filename)} ({info.num_pages} pages)"
    if title:
        said += f" {title}"
    return f"{said} [{', '.join(map(in_line, tags))}]" if tags else said
