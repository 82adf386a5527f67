"""ctx init, status, doctor, backup, restore: where the index is, how it is, and a copy of it."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.call import Call, offers, orderly_end
from cli.options import ForceOption, NoImagesOption, PathArgument, WaitOption
from cli.output import on_terminal, paint, write, write_document
from research.errors import CtxError
from research.files import PROJECT_FILE, PROJECT_FOLDER, index_folder, user_config
from research.reports import Check, amount, places, remedy
from research.settings import given_settings, load_settings
from research.text import one_line

if TYPE_CHECKING:
    from rich.text import Text

    from research.index import Index
    from research.reports import Status

_ITEMS = {"code": "code", "commit": "commits", "experience": "experiences", "value": "values"}

# The words of ctx.doctor/1, which scripts know.
_WORDS = {"ok": "ok", "warning": "warn", "error": "fail"}
_STYLES = {"ok": "green", "fixed": "green", "warn": "yellow", "fail": "bold red", "unfixed": "bold red"}


@offers(without=("index",))  # it makes one, and is told where by DIR
def init(
    call: Call,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="The project's folder. Default: this one.", show_default=False)
    ] = Path(),
) -> int:
    """Makes DIR/.ctx, readable by you alone. Commands run in DIR or below it then use that index.

    Examples:
      ctx init
      ctx init ~/papers
    """
    from research.index import Index

    made = Index(folder.expanduser().absolute() / PROJECT_FOLDER)
    created = made.create()
    call.show("ctx.init/1", {"index": str(made.root), "created": created}, [(made.root,)])
    call.say("made; add documents with: ctx ingest PATH" if created else "this index was there already")
    if note := _other_index(made.root):
        call.note(note)
    return 0


def _other_index(made: Path) -> str:
    """Which index commands use in this project, or beside it, though this one was made."""
    folder = made.parent
    try:
        settings = load_settings(folder=folder)
        used, outer = index_folder(settings, folder), index_folder(settings, folder.parent)
    except CtxError:  # whatever it is, the next command tells it
        return ""
    if used != made:
        why = "CTX_INDEX is set" if os.environ.get("CTX_INDEX") else f"set in {PROJECT_FILE} or {user_config()}"
        return f"commands here use {used}, not this one ({why})"
    if outer != made and outer.name == PROJECT_FOLDER:
        return f"it lies inside another project, whose index {outer} stays in use outside {folder}"
    return ""


def status(call: Call) -> int:
    """Says also what is unfinished, and who outside of this machine would be contacted.

    Examples:
      ctx status
      ctx status --json | jq .unfinished_documents
    """
    index = call.index_of(call.settings())
    why = _chosen_by(call, index)
    found = index.admin.status()
    if call.as_json:
        fields = asdict(found)
        fields["given_up"] = [{"source_path": page.pop("path"), **page} for page in fields["given_up"]]
        write_document("ctx.status/2", {"index": found.index, "chosen_by": why, **fields})
    else:
        for name, value in _status_lines(found, why):
            write(f"{name:<13}{one_line(value)}\n")
    return 0


def _chosen_by(call: Call, index: Index) -> str:
    said = given_settings({"index": call.folder}).get("index")
    if said is not None and said.value:
        return said.where if said.where.startswith(("--", "CTX_")) else f"set in {said.where}"
    return "the nearest .ctx upward" if index.root.name == PROJECT_FOLDER else "the default; no .ctx here or above"


def _status_lines(status: Status, chosen_by: str) -> Iterator[tuple[str, str]]:
    contacts = ", ".join(f"{each.address} ({each.use})" for each in status.contacts) or "nobody: all of it runs here"
    yield "index", f"{status.index}  ({chosen_by})"
    if not status.exists:
        yield "state", "nothing there yet; make it with: ctx ingest PATH"
        yield "contacts", contacts
        return
    yield "documents", f"{status.documents:,}"
    empty = f", {status.pages_without_text:,} without text" if status.pages_without_text else ""
    yield "pages", f"{status.pages:,}{empty}"
    yield "chunks", f"{status.chunks:,}"
    if status.memories:
        waiting = status.memories_without_vectors
        yield "memories", f"{status.memories:,}" + (f", {waiting:,} without a vector yet" if waiting else "")
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
    yield "contacts", contacts
    if status.unfinished_documents:
        waiting_for = f"{_waits(status.unfinished_documents, 'document')} for {amount(status.pending_chunks, 'vector')}"
        yield "unfinished", f"{waiting_for}; finish with: ctx ingest PATH"
    if status.pages_for_ocr:
        yield "ocr", f"{_waits(status.pages_for_ocr, 'page')} to be read by OCR: ctx ingest PATH"
    if status.given_up:
        yield "given up", f"{places(status.given_up)}; {remedy(status.given_up)}"
    behind = f"{status.collections_missing:,} missing, {status.collections_surplus:,} too many"
    yield (
        "collections",
        f"behind ({behind}); the next ctx ask mends them" if status.collections_behind else "up to date",
    )
    if status.writing:
        yield "writing", f"process {status.writer_pid}" if status.writer_pid else "another process"


def _waits(count: int, what: str) -> str:
    return f"{amount(count, what)} {'waits' if count == 1 else 'wait'}"


def doctor(
    call: Call,
    *,
    fix: Annotated[bool, typer.Option("--fix", help="Repair what can be repaired, then check.")] = False,
    rebuild: Annotated[
        bool, typer.Option("--reindex", help="Rebuild every derived index from the catalog, then check.")
    ] = False,
    wait: WaitOption = 0.0,
) -> int:
    """With --fix it repairs first what can be repaired (damaged or lost collections, full-text search, the ledger, what
    stopped runs left behind), tells what it did and what it could not do, and then checks. With --reindex full-text
    search and the Chroma collections are rebuilt from what the catalog holds: no file is read, nothing is embedded
    again, and questions are answered meanwhile. Documents are never touched. Exit code 1 if any check fails; warnings
    do not count.

    Examples:
      ctx doctor
      ctx doctor --fix
      ctx doctor --reindex --wait
      ctx doctor --json | jq '.checks[] | select(.severity != "ok")'
    """
    index = call.index_of(call.settings())
    with orderly_end():
        repairs = index.admin.repair() if fix else []
        if rebuild:
            done = index.admin.reindex(wait=wait)
            words = f"full text of {done.pages:,} pages, {done.text_records:,} chunks and {done.visual_records:,} pages"
            repairs = [*repairs, Check("reindex", "ok", f"{words} in the collections", "")]
    checks = index.admin.check()
    lines = [("fixed" if done.severity == "ok" else "unfixed", done) for done in repairs]
    lines += [(_WORDS[check.severity], check) for check in checks]
    if on_terminal() and not call.as_json:
        paint(_check_line(word, check) for word, check in lines)
    else:
        counts = Counter(_WORDS[check.severity] for check in checks)
        fields: dict[str, Any] = {"summary": {word: counts[word] for word in _WORDS.values()}}
        if fix or rebuild:
            fields["repairs"] = [
                {"name": done.name, "message": done.message, "fixed": done.severity == "ok", "remedy": done.remedy}
                for done in repairs
            ]
        fields["checks"] = [{**asdict(check), "severity": _WORDS[check.severity]} for check in checks]
        rows = ((word, each.name, each.message, *([each.remedy] if each.remedy else [])) for word, each in lines)
        call.show("ctx.doctor/1", fields, rows)
    return 1 if any(check.severity == "error" for check in (*repairs, *checks)) else 0


def _check_line(word: str, check: Check) -> Text:
    from rich.text import Text

    return Text.assemble(
        (f"{word:<4} ", _STYLES[word]),
        (f"{check.name:<13}", "bold"),
        one_line(check.message),
        (f"\n{'':<18}→ {one_line(check.remedy)}" if check.remedy else "", "dim"),
    )


def backup(call: Call, file: PathArgument, *, no_images: NoImagesOption = False, force: ForceOption = False) -> int:
    """The file is a plain zip: the catalog with every page, chunk and vector, and the page images. Chroma's files are
    not in it; they are built again on restore. An ingest may run meanwhile: the backup holds the documents complete at
    its start.

    Examples:
      ctx backup papers.ctx.zip
      ctx backup /media/disk/papers.ctx.zip --no-images --force
    """
    index = call.index()
    with orderly_end():
        done = index.admin.backup(file.expanduser().absolute(), images=not no_images, force=force)
    call.show("ctx.backup/1", {"index": str(index.root), **asdict(done)}, [(done.file,)])
    if not call.as_json:
        size = f"{done.images:,} image files, {done.size_bytes / 1e6:,.1f} MB"
        call.say(f"{done.documents:,} documents, {done.pages:,} pages, {size}; bring it back with: ctx restore FILE")
    return 0


def restore(call: Call, file: PathArgument, *, force: ForceOption = False, wait: WaitOption = 0.0) -> int:
    """The backup is checked as a whole before anything is put in place, and what was there stays until it is replaced
    in one step. Without --force only an empty or absent index is filled. The documents themselves are not in a backup
    and are not needed to ask questions.

    Examples:
      ctx restore papers.ctx.zip
      ctx restore papers.ctx.zip --index ~/papers/.ctx
      ctx restore papers.ctx.zip --force
    """
    index = call.index()
    with orderly_end():
        done = index.admin.restore(file.expanduser().absolute(), force=force, wait=wait)
    call.show("ctx.restore/1", {"index": str(index.root), **asdict(done)}, [(index.root,)])
    call.say(f"{done.documents:,} documents, {done.pages:,} pages, {done.chunks:,} chunks are back")
    if done.kept_aside:
        call.say(f"the damaged catalog was kept as {done.kept_aside}")
    for name in done.foreign_encoders:
        call.say(f"it was filled by {name}, which is not part of ctx and is used only if you allow it")
    return 0
