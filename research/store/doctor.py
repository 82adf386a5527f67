"""The checks of an index, each with its remedy, and repairing it: check, fix, check again, and say honestly what came
of it; or every derived index rebuilt from the catalog. A check never raises: what goes wrong is what it reports.
"""

from __future__ import annotations

import os
import shlex
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from research.errors import CHECK, DAMAGED, MEND, BusyError, CtxError
from research.reports import Check, Reindexed, places, remedy
from research.store import generations
from research.store.catalog import Catalog, create_schema
from research.store.files import left_uploads
from research.store.fulltext import rebuild_fulltext
from research.store.generations import state_of
from research.store.holdings import describe_gone, gone_documents, remedy_for_gone
from research.store.integrity import FULL, QUICK, IntegrityCheck, check_structure
from research.store.ledger import STAGE_IMAGES, STAGE_OCR, STAGE_VECTORS
from research.store.paths import IndexPaths, is_locked, write_lock
from research.store.publish import chroma_problems, publish_in_subprocess, verify_in_subprocess
from research.store.vectors import OFF, REGIONS

FIX = "ctx doctor --fix"
_SHOWN_UPLOADS = 3
_SHOWN_REPOSITORIES = 5


def check_index(paths: IndexPaths, named_encoders: Sequence[str] = (), timeout: int = 0) -> list[Check]:
    """All quick checks of an index, in order. `named_encoders` are those the user allows; `timeout` is how many seconds
    one at an address may take, 0 the usual."""
    if not paths.exists:
        return [Check("index", "warning", paths.nothing_found().message, "ctx ingest PATH")]
    found = guarded("folder", lambda: _folder(paths))
    found += guarded("catalog", lambda: _with_catalog(paths, _catalog))
    if found[-1].severity == "error":
        return found  # whatever stands on it would only say the same again
    checks: dict[str, Callable[[Catalog], Iterable[Check]]] = {
        "collections": _collections,
        "text": lambda catalog: _text(catalog, named_encoders, timeout),
        "visual": lambda catalog: _visual(catalog, named_encoders),
        "unfinished": _unfinished,
        "given up": _given_up,
        "consistency": _consistency,
        "files": _files,
        "uploads": _uploads,
        "commits": _commits,
    }
    for name, check in checks.items():
        found += guarded(name, lambda check=check: _with_catalog(paths, check))  # type: ignore[misc]
    return found


def guarded(name: str, check: Callable[[], Iterable[Check]], trouble: str = DAMAGED) -> list[Check]:
    """What a check reports, or what kept it from that. `trouble`: what to do about a failure that nobody explains."""
    try:
        return list(check())
    except CtxError as error:
        return [Check(name, "error", error.message, remedy_of(error))]
    except (OSError, ImportError, ValueError, RuntimeError, sqlite3.Error) as error:
        return [Check(name, "error", f"{type(error).__name__}: {error}", trouble)]


def check_sqlite() -> Iterator[Check]:
    """Whether the SQLite of this Python can hold an index."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        try:
            create_schema(connection)
        except sqlite3.OperationalError:
            message = f"SQLite {sqlite3.sqlite_version} has no FTS5"
            yield Check("sqlite", "error", message, "use a Python built with FTS5")
        else:
            yield Check("sqlite", "ok", f"SQLite {sqlite3.sqlite_version} with FTS5")


def remedy_of(error: CtxError) -> str:
    """What the error advises; whoever asks here is in `ctx doctor` already."""
    return DAMAGED if error.hint in {CHECK, MEND} else error.hint


def _with_catalog(paths: IndexPaths, check: Callable[[Catalog], Iterable[Check]]) -> Iterator[Check]:
    with Catalog(paths) as catalog:
        yield from check(catalog)


def _folder(paths: IndexPaths) -> Iterator[Check]:
    mode, name = paths.root.stat().st_mode & 0o777, shlex.quote(str(paths.root))
    if not os.access(paths.root, os.W_OK):
        yield Check("folder", "warning", f"{paths.root} cannot be written", f"chmod u+w {name}")
    elif mode & 0o077:
        message = f"{paths.root} can be read by others ({mode:o})"
        yield Check("folder", "warning", message, f"chmod 700 {name}", fixable=True)
    else:
        yield Check("folder", "ok", f"{paths.root} is writable and private")


def _catalog(catalog: Catalog) -> Iterator[Check]:
    problems = list(check_structure(catalog, quickly=True))
    for problem in problems:
        yield Check("catalog", "error", problem.message, f"{FIX}; or {DAMAGED}", fixable=True)
    if not problems:
        yield Check("catalog", "ok", "sound")


def _collections(catalog: Catalog) -> Iterator[Check]:
    state = state_of(catalog)
    if state.generation is None and state.missing == 0:
        yield Check("collections", "ok", "nothing to hold yet")
    elif state.generation is None:
        step = "the next ctx ask builds them again; or: ctx doctor --reindex"
        yield Check("collections", "warning", "not built, or damaged", step, fixable=True)
    elif state.due:
        lag = f"behind the catalog: {state.missing} missing, {state.surplus} too many"
        message = lag if state.missing or state.surplus else "have older names or images"
        yield Check("collections", "warning", message, "the next ctx ask brings them up to date", fixable=True)
    else:
        records = f"{state.generation.text_records} chunks, {state.generation.visual_records} pages"
        later = f"{state.missing} more are compared one by one" if state.behind else "up to date"
        yield Check("collections", "ok", f"sound and {later} ({records})")
    for message, step in chroma_problems(catalog):
        yield Check("collections", "warning", message, step)


def _consistency(catalog: Catalog) -> Iterator[Check]:
    if is_locked(catalog.paths):
        yield Check("consistency", "ok", "not looked at while another process writes")
        return
    problems = [problem for check in QUICK for problem in check(catalog)]
    for problem in problems:
        yield Check("consistency", "warning", problem.message, FIX, fixable=True)
    if not problems:
        yield Check("consistency", "ok", "pages, words, images and ledger agree; nothing was left behind")


def _text(catalog: Catalog, named_encoders: Sequence[str], timeout: int) -> Iterator[Check]:
    """Whether what filled the text side may and can still be asked, told without loading it. An address is tried."""
    from research.encoders import check_allowed, check_text_encoder

    name = catalog.chunks.encoder()
    try:
        check_allowed(name, named_encoders)
        told = check_text_encoder(name, dim=catalog.chunks.dim(), sketch=catalog.chunks.sketch(), timeout=timeout)
    except CtxError as error:
        yield Check("text", "warning", error.message, error.hint)
    else:
        yield Check("text", "ok", told or "nothing has filled it yet")


def _visual(catalog: Catalog, named_encoders: Sequence[str]) -> Iterator[Check]:
    """Whether what filled the visual side may and can still be asked, told without loading it."""
    from research.encoders import INSTALL, check_allowed, checkpoint_of, checkpoints, installed
    from research.errors import EncoderNotAllowed

    name, problem = catalog.visual.encoder(), catalog.visual.problem()
    if problem:
        step = "ctx ingest PATH --visual regions, or another model"
        yield Check("visual", "warning", f"left as it was: {problem}", step)
        return
    if name in ("", OFF) or name.startswith(REGIONS):
        yield Check("visual", "ok", name or "nothing has filled it yet")
        return
    try:
        check_allowed(name, named_encoders)
    except EncoderNotAllowed as error:
        yield Check("visual", "warning", error.message, error.hint)
        return
    if not installed():
        message = f"{name} filled it, and the packages behind it are not installed"
        yield Check("visual", "warning", message, INSTALL)
    elif not checkpoints.at_hand(checkpoint_of(name)):
        message = f"the weights of {name} are not on this machine"
        yield Check("visual", "warning", message, "ctx ingest PATH --visual MODEL")
    else:
        yield Check("visual", "ok", name)


def _unfinished(catalog: Catalog) -> Iterator[Check]:
    waiting = catalog.ledger.unfinished()
    if STAGE_VECTORS in waiting:
        message = f"{len(waiting[STAGE_VECTORS])} documents are not embedded yet and are found by their words only"
        yield Check("unfinished", "warning", message, "ctx ingest PATH")
    elif STAGE_IMAGES in waiting:
        message = f"{len(waiting[STAGE_IMAGES])} documents have no page images yet"
        yield Check("unfinished", "warning", message, "ctx ingest PATH")
    else:
        yield Check("unfinished", "ok", "every document is complete")
    if STAGE_OCR in waiting:
        message = f"{len(waiting[STAGE_OCR])} documents have pages that only OCR can read"
        yield Check("ocr", "ok", message, "ctx ingest PATH --ocr auto")


def _given_up(catalog: Catalog) -> Iterator[Check]:
    found = catalog.ledger.given_up()
    if found:
        reasons = "; ".join(sorted({page.reason for page in found}))
        yield Check("given up", "warning", f"{places(found)}: {reasons}", remedy(found))
    else:
        yield Check("given up", "ok", "no page was given up")


def _commits(catalog: Catalog) -> Iterator[Check]:
    """Nothing where there are none."""
    counts = catalog.items.count_by_parent("commit")
    gone = [name for name in counts if not Path(name).is_dir()]
    for name in gone[:_SHOWN_REPOSITORIES]:
        remedy = f"ctx remove --commits {shlex.quote(name)}"
        yield Check("commits", "warning", f"the repository {name} is gone; its commits are still found", remedy)
    if counts and not gone:
        read = f"{sum(counts.values()):,} of {len(counts)} {'repository' if len(counts) == 1 else 'repositories'}"
        yield Check("commits", "ok", f"{read}, all where they were")


def _files(catalog: Catalog) -> Iterator[Check]:
    total, gone = gone_documents(catalog)
    if gone:
        message = f"{len(gone)} of {total} files are gone: {describe_gone(gone)}"
        yield Check("files", "warning", message, remedy_for_gone(gone))
    else:
        yield Check("files", "ok", f"all {total} files are where they were")


def _uploads(catalog: Catalog) -> Iterator[Check]:
    """Files that were sent to a server and are in no document. Nothing is said where there are none."""
    known = {str(row[0]) for row in catalog.execute("SELECT doc_id FROM documents")}
    left = left_uploads(catalog.paths, known)
    failed = [each for each in left if not each.waiting]
    folder = shlex.quote(str(catalog.paths.uploads))
    if failed:
        told = sorted(f"{each.upload.name}: {each.reason or 'not read'}" for each in failed)
        why = "; ".join(told[:_SHOWN_UPLOADS])
        step = f"try again with: ctx ingest {folder} --retry; or take them away: {failed[0].upload.folder}"
        yield Check("uploads", "warning", f"{len(failed)} uploaded files are in no document: {why}", step)
    if len(left) > len(failed):
        step = f"ctx serve --allow-ingest reads them when it starts; or: ctx ingest {folder}"
        yield Check("uploads", "warning", f"{len(left) - len(failed)} uploaded files wait to be read", step)


def repair(paths: IndexPaths) -> list[Check]:
    """Repair what can be repaired, and tell of each thing whether it is well now ("ok") or could not be ("error"); an
    empty list means that nothing was wrong. Raises `BusyError`."""
    if not paths.exists:
        return []
    repairs: list[Check] = []
    try:
        with write_lock(paths):
            repairs += _repair_folder(paths)
            with Catalog(paths, writable=True) as catalog:
                for check in FULL:
                    repairs += _repair(catalog, check)
                repairs += _repair_collections(catalog)
    except BusyError:
        raise
    except CtxError as error:
        repairs.append(Check("catalog", "error", error.message, remedy_of(error)))
    except sqlite3.DatabaseError as error:
        repairs.append(Check("catalog", "error", f"damaged: {error}", DAMAGED))
    return repairs


def _repair(catalog: Catalog, check: IntegrityCheck) -> list[Check]:
    repairs = []
    found = list(check(catalog))
    for problem in found:
        if problem.fix is not None:
            problem.fix(catalog)
    left = {problem.message for problem in check(catalog)} if found else set()
    for problem in found:
        if problem.message in left:
            repairs.append(Check(problem.name, "error", problem.message, DAMAGED))
        else:
            repairs.append(Check(problem.name, "ok", problem.message, problem.remedy, fixable=True))
    return repairs


def _repair_collections(catalog: Catalog) -> list[Check]:
    if not catalog.documents.all() or verify_in_subprocess(catalog.paths):
        return []
    publish_in_subprocess(catalog.paths, rebuild=True)
    message = "the collections were damaged, lost or behind, and were built anew from the catalog"
    return [Check("collections", "ok", message, fixable=True)]


def _repair_folder(paths: IndexPaths) -> list[Check]:
    mode = paths.root.stat().st_mode & 0o777
    if not mode & 0o077:
        return []
    paths.root.chmod(0o700)
    return [Check("folder", "ok", f"the index could be read by others ({mode:o})", fixable=True)]


def reindex(paths: IndexPaths, *, wait: float = 0.0) -> Reindexed:
    """Full-text search and the Chroma collections, made anew. Readers use the old ones until the new are whole."""
    if not paths.exists:
        raise paths.nothing_found()
    with write_lock(paths, wait=wait), Catalog(paths, writable=True) as catalog:
        pages = rebuild_fulltext(catalog)
        publish_in_subprocess(paths, rebuild=True)
        generation = generations.current(catalog)
    return Reindexed(
        pages, generation.text_records if generation else 0, generation.visual_records if generation else 0
    )
