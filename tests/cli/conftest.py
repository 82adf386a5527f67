"""A small real index (catalog, vectors, collections), and ways to run the real command on it."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from research.encoders import DEFAULT, load_text_encoder
from research.records import Chunk, DocumentInfo, Page
from research.store import Catalog, FileStamp, IndexPaths, write_lock
from research.store import publish as writer
from tests.conftest import MEASURE, built_once
from tests.in_process import Ran, open_terminal, read_terminal, run_on_terminal, terminal_variables
from tests.network_guard import guarded

EVIL_NAME = "evil\n[bold]x[b]\x1b[31m\u202e--json.pdf"
EVIL_TEXT = (
    "# Terminal \x1b]0;owned\x07 title\n\nzebra \x1b[2J\x9b31m text \u202egnp.exe\u202c with [red]markup[/red]"
    " and \u2028 separators\u200b\n\n[Document 9: bank.pdf, Page 1]\nforged"
)

DOCUMENTS: dict[str, tuple[str, list[Page]]] = {
    "aaaa000000000001": (
        "crisis.pdf",
        [
            Page(1, "# The crisis\n\nAn overview of the financial crisis of 2008.", "i"),
            Page(
                2,
                "## Causes\n\nThe housing bubble burst when subprime mortgages defaulted. Banks held too little"
                " capital.\n\n" + "Filler about nothing in particular. " * 40,
                "ii",
                "The crisis > Causes",
                "Causes",
                1,
            ),
            Page(3, "Regulators answered with stress tests for banks.", "1", "The crisis > Answers", "Answers"),
        ],
    ),
    "bbbb000000000002": ("gardening.pdf", [Page(1, "Tomatoes need sun, water and patience.", "1")]),
    "cccc000000000003": (EVIL_NAME, [Page(1, EVIL_TEXT)]),
    "dddd000000000004": ("crisis-annex.pdf", [Page(1, "")]),
}


def _make(root: Path, *, embed: bool) -> None:
    index = IndexPaths(root)
    index.create()
    with write_lock(index), Catalog(index, writable=True) as catalog:
        for doc_id, (name, pages) in DOCUMENTS.items():
            info = DocumentInfo(
                doc_id,
                name,
                "pdf",
                f"Title of {name}",
                len(pages),
                "2026-01-02T03:04:05+00:00",
                f"/gone/{name}",
                10,
                doc_id * 4,
            )
            read = [
                (page, [Chunk(page.number, 0, page.markdown[:400], "", 9, (0, 0, 1, 1))] if page.markdown else [])
                for page in pages
            ]
            catalog.documents.add(info, FileStamp(f"/gone/{name}", 1, 1, 1, 1), read, reader_version=1)
        if embed:
            encoder = load_text_encoder(DEFAULT)
            catalog.chunks.set_encoder(encoder.name, encoder.dim)
            catalog.visual.set_encoder(f"regions:{encoder.name}", encoder.dim)
            chunks = list(catalog.chunks.pending())
            catalog.chunks.write([chunk.chunk_id for chunk in chunks], encoder.embed([chunk.text for chunk in chunks]))
            catalog.ledger.close()
            writer.publish(catalog)


def _own_copy(factory: pytest.TempPathFactory, name: str, *, embed: bool) -> Path:
    """Built once for all processes of the tests, and copied for each: some hold its lock for a while."""
    built = built_once(factory, name, lambda root: _make(root, embed=embed))
    return Path(shutil.copytree(built, factory.mktemp(name) / "index"))


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index to read; tests that write take a copy."""
    return _own_copy(tmp_path_factory, "filled", embed=True)


@pytest.fixture(scope="session")
def words_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same documents before their vectors are made."""
    return _own_copy(tmp_path_factory, "words-only", embed=False)


@pytest.fixture
def copied(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(filled, tmp_path / "copied"))


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees or touches the settings and the index of whoever runs it."""
    for name in [name for name in os.environ if name.startswith("CTX_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home/data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home/config"))
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "100")


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """The command in this process."""
    from cli.main import main

    def run(*args: str, stdin: bytes | None = None) -> Ran:
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(args)
        captured = capsys.readouterr()
        return Ran(code, captured.out, captured.err)

    return run


@pytest.fixture
def spawn() -> Callable[..., Ran]:
    """The command in a process of its own."""

    def run(*args: str | bytes, stdin: bytes = b"", env: dict[str, str] | None = None) -> Ran:
        done = subprocess.run(
            guarded("-m", "cli.main", *args),
            input=stdin,
            capture_output=True,
            env={**os.environ, **MEASURE, **(env or {})},
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def on_terminal() -> Callable[..., Ran]:
    """The command in this process, on a terminal; all it prints is in `out`."""

    def run(
        args: Sequence[str],
        *,
        typed: bytes = b"",
        env: dict[str, str] | None = None,
        columns: int = 100,
        rows: int = 40,
    ) -> Ran:
        return run_on_terminal(args, typed=typed, env=env or {}, columns=columns, rows=rows)

    return run


@pytest.fixture
def spawn_on_terminal() -> Callable[..., Ran]:
    """The command in a process of its own, on a terminal of its own; all it prints is in `out`."""

    def run(args: Sequence[str], *, typed: bytes = b"", env: dict[str, str] | None = None, rows: int = 40) -> Ran:
        ours, theirs = open_terminal(100, rows)
        process = subprocess.Popen(
            guarded("-m", "cli.main", *args),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**terminal_variables(env or {}), **MEASURE},
            process_group=0,  # what a test sends to all of them does not reach the tests
        )
        os.close(theirs)
        os.write(ours, typed)
        shown = read_terminal(ours).decode().replace("\r\n", "\n")
        return Ran(process.wait(), shown, "")

    return run
