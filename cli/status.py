"""ctx status: where the index is and what is in it."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from cli.options import common
from research.reports import amount

if TYPE_CHECKING:
    from collections.abc import Iterator

    from research.reports import Status

DETAILS = ""

EPILOG = """
\b
Examples:
  ctx status
  ctx status --json | jq .unfinished_documents
"""


_ITEMS = {"code": "code", "commit": "commits", "experience": "experiences", "value": "values"}


def command(ctx: typer.Context) -> int:
    from cli.output import write, write_document
    from cli.running import locate
    from research.text import one_line

    given = common(ctx)
    location = locate(given)
    status = location.index.admin.status()
    if given.as_json:
        fields = asdict(status)
        fields["given_up"] = [{"source_path": page.pop("path"), **page} for page in fields["given_up"]]
        write_document("ctx.status/2", {"index": status.index, "chosen_by": location.why, **fields})
    else:
        for name, value in _lines(status, location.why):
            write(f"{name:<13}{one_line(value)}\n")
    return 0


def _lines(status: Status, chosen_by: str) -> Iterator[tuple[str, str]]:
    from research.reports import places, remedy

    yield "index", f"{status.index}  ({chosen_by})"
    if not status.exists:
        yield "state", "nothing there yet; make it with: ctx ingest PATH"
        yield "contacts", _contacts(status)
        return
    yield "documents", f"{status.documents:,}"
    empty = f", {status.pages_without_text:,} without text" if status.pages_without_text else ""
    yield "pages", f"{status.pages:,}{empty}"
    yield "chunks", f"{status.chunks:,}"
    if status.memories:
        waiting = (
            f", {status.memories_without_vectors:,} without a vector yet" if status.memories_without_vectors else ""
        )
        yield "memories", f"{status.memories:,}{waiting}"
    if status.sessions:
        yield "sessions", f"{status.sessions:,}, with {amount(status.turns, 'question')}"
    for kind, count in status.items.items():
        yield _ITEMS[kind], f"{count:,}"
    if status.items_without_vectors:
        yield "to embed", f"{status.items_without_vectors:,} of these"
    yield "size", f"{status.size_bytes / 1e6:,.1f} MB" if status.size_bytes else "not told: not all may be seen"
    yield "encoder", status.text_encoder or "none yet"
    unseen = f", {amount(status.pages_without_visual, 'page')} not seen yet" if status.pages_without_visual else ""
    yield "visual", f"{status.visual_encoder or 'none yet'}{unseen}"
    for name in status.encoders_not_allowed:
        yield "not allowed", f"{name} is not loaded; allow it with CTX_ALLOWED_ENCODERS={shlex.quote(name)}"
    yield "contacts", _contacts(status)
    if status.unfinished_documents:
        waits = "waits" if status.unfinished_documents == 1 else "wait"
        yield (
            "unfinished",
            f"{amount(status.unfinished_documents, 'document')} {waits} for"
            f" {amount(status.pending_chunks, 'vector')}; finish with: ctx ingest PATH",
        )
    if status.pages_for_ocr:
        waits = "waits" if status.pages_for_ocr == 1 else "wait"
        yield "ocr", f"{amount(status.pages_for_ocr, 'page')} {waits} to be read by OCR: ctx ingest PATH"
    if status.given_up:
        yield "given up", f"{places(status.given_up)}; {remedy(status.given_up)}"
    if status.collections_behind:
        yield (
            "collections",
            f"behind ({status.collections_missing:,} missing, {status.collections_surplus:,} too many);"
            " the next ctx ask mends them",
        )
    else:
        yield "collections", "up to date"
    if status.writing:
        yield "writing", f"process {status.writer_pid}" if status.writer_pid else "another process"


def _contacts(status: Status) -> str:
    return ", ".join(f"{each.address} ({each.use})" for each in status.contacts) or "nobody: all of it runs here"
