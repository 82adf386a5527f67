"""What `ctx doctor` looks at. A check never raises: what goes wrong is what it reports."""

from __future__ import annotations

import os
import shlex
import sqlite3
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from research.errors import CtxError
from research.store.catalog.catalog import Catalog
from research.store.error_hints import DAMAGED
from research.store.files.paths import IndexPaths

Severity = Literal["ok", "warn", "fail"]

_PACKAGES = ("chromadb", "onnxruntime", "numpy", "pymupdf", "tiktoken", "tokenizers", "typer", "rich")
_REINSTALL = "pip install --force-reinstall ctx-research"


@dataclass(frozen=True, slots=True)
class Check:
    """One finding and what to do about it."""

    name: str
    severity: Severity
    message: str
    remedy: str = ""


def run_checks(paths: IndexPaths, named_encoders: Sequence[str] = ()) -> list[Check]:
    """All checks in order; those of the index only where there is one. `named_encoders` are those the user allows."""
    found = [*_of_installation()]
    if not paths.exists:
        found.append(Check("index", "warn", f"there is no index at {paths.root}", "ctx ingest PATH"))
        return found
    found.extend(_folder(paths))
    found.extend(_guarded("catalog", lambda: _catalog(paths)))
    if found[-1].name == "catalog" and found[-1].severity == "fail":
        return found  # whatever stands on it would only say the same again
    for name, check in (
        ("collections", _collections),
        ("text", lambda catalog: _text(catalog, named_encoders)),
        ("visual", lambda catalog: _visual(catalog, named_encoders)),
        ("unfinished", _unfinished),
        ("given up", _given_up),
        ("consistency", _consistency),
        ("files", _files),
    ):
        found.extend(_guarded(name, lambda check=check: _with_catalog(paths, check)))  # type: ignore[misc]
    return found


def _of_installation() -> Iterator[Check]:
    yield from _guarded("python", _python)
    yield from _guarded("packages", _packages)
    yield from _guarded("sqlite", _sqlite)
    yield from _guarded("encoder", _encoder)
    yield from _guarded("tokens", _tokens)
    yield from _guarded("telemetry", _telemetry)


def _guarded(name: str, check: Callable[[], Iterator[Check]]) -> list[Check]:
    try:
        return list(check())
    except CtxError as error:
        return [Check(name, "fail", error.message, error.hint)]
    except (OSError, ImportError, ValueError, RuntimeError, sqlite3.Error) as error:
        return [Check(name, "fail", f"{type(error).__name__}: {error}", _REINSTALL)]


def _with_catalog(paths: IndexPaths, check: Callable[[Catalog], Iterator[Check]]) -> Iterator[Check]:
    with Catalog(paths) as catalog:
        yield from check(catalog)


def _python() -> Iterator[Check]:
    yield Check("python", "ok", f"{sys.version.split()[0]} at {sys.executable}")


def _packages() -> Iterator[Check]:
    from importlib.metadata import PackageNotFoundError, version

    found, missing = [], []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        yield Check("packages", "fail", f"not installed: {', '.join(missing)}", _REINSTALL)
    else:
        yield Check("packages", "ok", ", ".join(found))


def _sqlite() -> Iterator[Check]:
    with sqlite3.connect(":memory:") as connection:
        try:
            connection.execute("CREATE VIRTUAL TABLE probe USING fts5 (body)")
        except sqlite3.OperationalError:
            yield Check(
                "sqlite", "fail", f"SQLite {sqlite3.sqlite_version} has no FTS5", "use a Python built with FTS5"
            )
            return
    connection.close()
    yield Check("sqlite", "ok", f"SQLite {sqlite3.sqlite_version} with FTS5")


def _encoder() -> Iterator[Check]:
    from research.encoders.minilm.files import verify_files

    problems = verify_files()
    if problems:
        yield Check("encoder", "fail", "; ".join(problems), _REINSTALL)
    else:
        yield Check("encoder", "ok", "the model's files are the published ones")


def _tokens() -> Iterator[Check]:
    from research.context.tokens import DEFAULT_ENCODING, TokenCounter

    TokenCounter().count("x")
    yield Check("tokens", "ok", f"the tables of {DEFAULT_ENCODING} are the published ones")


def _telemetry() -> Iterator[Check]:
    from importlib.metadata import version

    from research.telemetry_check import look

    seen = look()
    names = f"ONNX Runtime {version('onnxruntime')} and Chroma {version('chromadb')}"
    if not seen.ran:
        yield Check("telemetry", "fail", f"{names} could not be looked at: they do not run", _REINSTALL)
    elif seen.left_behind:
        message = f"{names}: a question to the encoder left {', '.join(seen.left_behind)} in an empty home"
        yield Check("telemetry", "fail", message, _REINSTALL)
    elif seen.chroma_reports:
        yield Check("telemetry", "fail", f"{names}: Chroma is set to report its use", _REINSTALL)
    else:
        yield Check("telemetry", "ok", f"off in {names}: tried in an empty home, they left nothing there")


def _folder(paths: IndexPaths) -> Iterator[Check]:
    mode = paths.root.stat().st_mode & 0o777
    if not os.access(paths.root, os.W_OK):
        yield Check("folder", "warn", f"{paths.root} cannot be written", f"chmod u+w {shlex.quote(str(paths.root))}")
    elif mode & 0o077:
        yield Check(
            "folder",
            "warn",
            f"{paths.root} can be read by others ({mode:o})",
            f"chmod 700 {shlex.quote(str(paths.root))}",
        )
    else:
        yield Check("folder", "ok", f"{paths.root} is writable and private")


def _catalog(paths: IndexPaths) -> Iterator[Check]:
    with Catalog(paths) as catalog:
        answer = [str(row[0]) for row in catalog.connection.execute("PRAGMA quick_check(3)")]
    if answer == ["ok"]:
        yield Check("catalog", "ok", "sound")
    else:
        yield Check("catalog", "fail", f"damaged: {'; '.join(answer)}", f"ctx doctor --fix; or {DAMAGED}")


def _collections(catalog: Catalog) -> Iterator[Check]:
    from research.store.vectors.sync_state import state_of

    state = state_of(catalog)
    if state.generation is None and state.missing == 0:
        yield Check("collections", "ok", "nothing to hold yet")
    elif state.generation is None:
        yield Check(
            "collections", "warn", "not built, or damaged", "the next ctx ask builds them again; or: ctx reindex"
        )
    elif state.outdated and not state.missing and not state.surplus:
        yield Check("collections", "warn", "have older names or images", "the next ctx ask brings them up to date")
    elif state.behind:
        message = f"behind the catalog: {state.missing} missing, {state.surplus} too many"
        yield Check("collections", "warn", message, "the next ctx ask brings them up to date")
    else:
        records = f"{state.generation.text_records} chunks, {state.generation.visual_records} pages"
        yield Check("collections", "ok", f"sound and up to date ({records})")


def _consistency(catalog: Catalog) -> Iterator[Check]:
    from cli.status import writer_of
    from research.store.upkeep.integrity import QUICK

    if writer_of(catalog.paths.lock) is not None:
        yield Check("consistency", "ok", "not looked at while another process writes")
        return
    found = [ailment for look in QUICK for ailment in look(catalog)]
    for ailment in found:
        yield Check("consistency", "warn", ailment.message, "ctx doctor --fix")
    if not found:
        yield Check("consistency", "ok", "pages, words, images and ledger agree; nothing was left behind")


def _text(catalog: Catalog, named_encoders: Sequence[str]) -> Iterator[Check]:
    """Whether what filled the text side may and can still be asked, told without loading it."""
    from research.encoders.allowed import check_allowed
    from research.encoders.registry import check_text_encoder
    from research.store.catalog import vectors

    name = vectors.encoder_of(catalog)
    try:
        check_allowed(name, named_encoders)
        check_text_encoder(name)
    except CtxError as error:
        yield Check("text", "warn", error.message, error.hint)
    else:
        yield Check("text", "ok", name or "nothing has filled it yet")


def _visual(catalog: Catalog, named_encoders: Sequence[str]) -> Iterator[Check]:
    """Whether what filled the visual side may and can still be asked, told without loading it."""
    from research.encoders import hub
    from research.encoders.visual.loading import INSTALL, installed
    from research.encoders.visual.registry import checkpoint_of
    from research.store.catalog import page_vectors

    name, problem = page_vectors.encoder_of(catalog), page_vectors.problem_of(catalog)
    if problem:
        yield Check(
            "visual", "warn", f"left as it was: {problem}", "ctx ingest PATH --visual regions, or another model"
        )
    elif name in ("", page_vectors.OFF) or name.startswith(page_vectors.REGIONS):
        yield Check("visual", "ok", name or "nothing has filled it yet")
    elif refused := _refusal(name, named_encoders):
        yield Check("visual", "warn", refused.message, refused.hint)
    elif not installed():
        yield Check("visual", "warn", f"{name} filled it, and the packages behind it are not installed", INSTALL)
    elif not hub.at_hand(checkpoint_of(name)):
        yield Check(
            "visual", "warn", f"the weights of {name} are not on this machine", "ctx ingest PATH --visual MODEL"
        )
    else:
        yield Check("visual", "ok", name)


def _refusal(name: str, named_encoders: Sequence[str]) -> CtxError | None:
    from research.encoders.allowed import EncoderNotAllowed, check_allowed

    try:
        check_allowed(name, named_encoders)
    except EncoderNotAllowed as error:
        return error
    return None


def _unfinished(catalog: Catalog) -> Iterator[Check]:
    from research.store.catalog.documents import unfinished
    from research.store.catalog.ledger import STAGE_IMAGES, STAGE_OCR, STAGE_VECTORS

    waiting = unfinished(catalog)
    if STAGE_VECTORS in waiting:
        message = f"{len(waiting[STAGE_VECTORS])} documents are not embedded yet and are found by their words only"
        yield Check("unfinished", "warn", message, "ctx ingest PATH")
    elif STAGE_IMAGES in waiting:
        message = f"{len(waiting[STAGE_IMAGES])} documents have no page images yet"
        yield Check("unfinished", "warn", message, "ctx ingest PATH")
    else:
        yield Check("unfinished", "ok", "every document is complete")
    if STAGE_OCR in waiting:
        message = f"{len(waiting[STAGE_OCR])} documents have pages that only OCR can read"
        yield Check("ocr", "ok", message, "ctx ingest PATH --ocr auto")


def _given_up(catalog: Catalog) -> Iterator[Check]:
    from cli.given_up import places, remedy
    from research.store.catalog.failures import given_up

    found = given_up(catalog)
    if found:
        reasons = "; ".join(sorted({page.reason for page in found}))
        yield Check("given up", "warn", f"{places(found)}: {reasons}", remedy(found))
    else:
        yield Check("given up", "ok", "no page was given up")


def _files(catalog: Catalog) -> Iterator[Check]:
    from research.store.catalog.documents import all_documents, paths_of

    documents = all_documents(catalog)
    gone = [d for d in documents if not any(Path(path).exists() for path in paths_of(catalog, d.doc_id))]
    if gone:
        names = ", ".join(d.filename for d in gone[:3]) + (" …" if len(gone) > 3 else "")
        yield Check("files", "warn", f"{len(gone)} of {len(documents)} files are gone: {names}", "ctx remove DOC")
    else:
        yield Check("files", "ok", f"all {len(documents)} files are where they were")
