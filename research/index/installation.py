"""Checks of what is installed: Python, packages, the shipped models and tables, and that nothing reports home."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

from research.reports import Check
from research.store import guarded

# Every package that pyproject.toml names, so that a broken installation is told by name.
PACKAGES = (
    "chromadb",
    "filelock",
    "httpx",
    "lazy-loader",
    "numpy",
    "onnxruntime",
    "pillow",
    "platformdirs",
    "pydantic",
    "pymupdf",
    "PyStemmer",
    "rapidfuzz",
    "rapidocr",
    "regex",
    "rich",
    "tiktoken",
    "tokenizers",
    "typer",
    "typing-extensions",
    "watchfiles",
)
REINSTALL = "pip install --force-reinstall ctx-research"


def check_installation() -> list[Check]:
    """All of them, in order. A check never raises: what goes wrong is what it reports."""
    return [
        *guarded("python", _python, REINSTALL),
        *guarded("packages", check_packages, REINSTALL),
        *guarded("sqlite", _sqlite, REINSTALL),
        *guarded("encoder", check_encoder, REINSTALL),
        *guarded("tokens", check_token_tables, REINSTALL),
        *guarded("telemetry", _telemetry, REINSTALL),
    ]


def _python() -> Iterator[Check]:
    yield Check("python", "ok", f"{sys.version.split()[0]} at {sys.executable}")


def check_packages(names: tuple[str, ...] = PACKAGES) -> Iterator[Check]:
    from importlib.metadata import PackageNotFoundError, version

    found, missing = [], []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        yield Check("packages", "error", f"not installed: {', '.join(missing)}", REINSTALL)
    else:
        yield Check("packages", "ok", ", ".join(found))


def _sqlite() -> Iterator[Check]:
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5 (body)")
    except sqlite3.OperationalError:
        message = f"SQLite {sqlite3.sqlite_version} has no FTS5"
        yield Check("sqlite", "error", message, "use a Python built with FTS5")
    else:
        yield Check("sqlite", "ok", f"SQLite {sqlite3.sqlite_version} with FTS5")
    finally:
        connection.close()


def check_encoder(folder: Path | None = None) -> Iterator[Check]:
    from research.encoders import minilm

    problems = minilm.verify_files(folder or minilm.FOLDER)
    if problems:
        yield Check("encoder", "error", "; ".join(problems), REINSTALL)
    else:
        yield Check("encoder", "ok", "the model's files are the published ones")


def check_token_tables(folder: Path | None = None) -> Iterator[Check]:
    """The tables as files. One that is damaged in the middle opens, and counts wrong."""
    from research.context import tokens
    from research.files import verify

    problems = verify(folder or tokens.FOLDER, tokens.SHIPPED)
    if problems:
        yield Check("tokens", "error", f"token counts cannot be trusted: {'; '.join(problems)}", REINSTALL)
    else:
        names = " and ".join(name.removesuffix(".bin") for name in tokens.SHIPPED)
        yield Check("tokens", "ok", f"the tables of {names} are the published ones")


def _telemetry() -> Iterator[Check]:
    from importlib.metadata import version

    from research.index.telemetry_check import look

    seen = look()
    names = f"ONNX Runtime {version('onnxruntime')} and Chroma {version('chromadb')}"
    if not seen.ran:
        yield Check("telemetry", "error", f"{names} could not be looked at: they do not run", REINSTALL)
    elif seen.left_behind:
        message = f"{names}: a question to the encoder left {', '.join(seen.left_behind)} in an empty home"
        yield Check("telemetry", "error", message, REINSTALL)
    elif seen.chroma_reports:
        yield Check("telemetry", "error", f"{names}: Chroma is set to report its use", REINSTALL)
    else:
        yield Check("telemetry", "ok", f"off in {names}: tried in an empty home, they left nothing there")
