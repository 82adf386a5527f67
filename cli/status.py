"""ctx status: where the index is and what is in it."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import typer

from cli.options import DebugOption, IndexOption, JsonOption, QuietOption, common, settings_for

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from cli.location import Location
    from research.store.catalog.catalog import Catalog
    from research.store.catalog.failures import GivenUp

DETAILS = ""

EPILOG = """
\b
Examples:
  ctx status
  ctx status --json | jq .unfinished_documents
"""


@dataclass(frozen=True, slots=True)
class Status:
    """The fields of the JSON document."""

    index: str
    chosen_by: str
    exists: bool
    documents: int = 0
    pages: int = 0
    pages_without_text: int = 0
    chunks: int = 0
    pending_chunks: int = 0
    unfinished_documents: int = 0
    pages_for_ocr: int = 0
    given_up: list[GivenUp] = field(default_factory=list)
    size_bytes: int = 0
    text_encoder: str = ""
    visual_encoder: str = ""
    encoders_not_allowed: tuple[str, ...] = ()  # named by the index alone, so not loaded
    pages_without_visual: int = 0
    collections_behind: bool = False
    collections_missing: int = 0
    collections_surplus: int = 0
    writer_pid: int | None = None


def command(
    ctx: typer.Context,
    *,
    as_json: JsonOption = False,
    index: IndexOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> int:
    from cli.location import locate
    from cli.output import write, write_document
    from cli.terminal import one_line

    given = common(ctx, index, quiet)
    status = _status(locate(given), settings_for(given).named_encoders)
    if as_json:
        write_document("ctx.status/1", asdict(status))
    else:
        for name, value in _lines(status):
            write(f"{name:<13}{one_line(value)}\n")
    return 0


def writer_of(lock: Path) -> int | None:
    """The process writing the index now. A note left by one that was killed does not count."""
    from research.store.files.lock import holder

    pid = holder(lock)
    if pid is None:
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:  # somebody else's process
        return pid
    return pid


def size_of(folder: Path) -> int:
    """Bytes of all files below; those that vanish meanwhile count nothing."""
    total = 0
    for current, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(current, name)).st_size  # noqa: PTH118  a hot loop over bare names
            except OSError:
                continue
    return total


def _status(location: Location, named_encoders: Sequence[str]) -> Status:
    from research.search.coverage import measure
    from research.store.catalog import page_vectors, vectors
    from research.store.catalog.catalog import Catalog
    from research.store.catalog.documents import all_documents, unfinished
    from research.store.catalog.failures import given_up
    from research.store.catalog.ledger import STAGE_OCR
    from research.store.catalog.page_writes import count_for_ocr
    from research.store.vectors import sync_state

    paths = location.paths
    if not paths.exists:
        return Status(str(paths.root), location.why, exists=False)
    with Catalog(paths) as catalog:
        state = sync_state.state_of(catalog)
        coverage = measure(catalog, [])
        return Status(
            index=str(paths.root),
            chosen_by=location.why,
            exists=True,
            documents=len(all_documents(catalog)),
            pages=coverage.pages,
            pages_without_text=coverage.pages_without_text,
            chunks=vectors.count_chunks(catalog),
            pending_chunks=vectors.count_pending(catalog),
            unfinished_documents=len(
                {doc for stage, ids in unfinished(catalog).items() for doc in ids if stage != STAGE_OCR}
            ),
            pages_for_ocr=count_for_ocr(catalog),
            given_up=given_up(catalog),
            size_bytes=size_of(paths.root),
            text_encoder=vectors.encoder_of(catalog),
            visual_encoder=page_vectors.encoder_of(catalog),
            encoders_not_allowed=_not_allowed(catalog, named_encoders),
            pages_without_visual=coverage.pages_without_visual,
            collections_behind=state.behind and (state.generation is not None or state.missing > 0),
            collections_missing=state.missing,
            collections_surplus=state.surplus,
            writer_pid=writer_of(paths.lock),
        )


def _not_allowed(catalog: Catalog, named: Sequence[str]) -> tuple[str, ...]:
    from research.encoders.allowed import EncoderNotAllowed, check_allowed
    from research.store.catalog import page_vectors, vectors

    found = []
    for name in (vectors.encoder_of(catalog), page_vectors.encoder_of(catalog)):
        try:
            check_allowed(name, named)
        except EncoderNotAllowed:
            found.append(name.removeprefix(f"{page_vectors.REGIONS}:"))
    return tuple(dict.fromkeys(found))


def _lines(status: Status) -> Iterator[tuple[str, str]]:
    from cli.given_up import places, remedy

    yield "index", f"{status.index}  ({status.chosen_by})"
    if not status.exists:
        yield "state", "nothing there yet; make it with: ctx ingest PATH"
        return
    yield "documents", f"{status.documents:,}"
    empty = f", {status.pages_without_text:,} without text" if status.pages_without_text else ""
    yield "pages", f"{status.pages:,}{empty}"
    yield "chunks", f"{status.chunks:,}"
    yield "size", f"{status.size_bytes / 1e6:,.1f} MB"
    yield "encoder", status.text_encoder or "none yet"
    unseen = f", {status.pages_without_visual:,} pages not seen yet" if status.pages_without_visual else ""
    yield "visual", f"{status.visual_encoder or 'none yet'}{unseen}"
    for name in status.encoders_not_allowed:
        yield "not allowed", f"{name} is not loaded; allow it with CTX_ALLOWED_ENCODERS={shlex.quote(name)}"
    if status.unfinished_documents:
        yield (
            "unfinished",
            f"{status.unfinished_documents:,} documents wait for {status.pending_chunks:,} vectors;"
            " finish with: ctx ingest PATH",
        )
    if status.pages_for_ocr:
        yield "ocr", f"{status.pages_for_ocr:,} pages wait to be read by OCR: ctx ingest PATH"
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
    if status.writer_pid is not None:
        yield "writing", f"process {status.writer_pid}"
