"""Shipped files compared with the list of SHA-256 sums that lies beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

LIST = "SHA256SUMS"


def sha256(path: Path) -> str:
    """The file's SHA-256 in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def verify(folder: Path, names: Iterable[str]) -> list[str]:
    """Problems with these files, one line each; empty when all are as listed."""
    try:
        lines = (folder / LIST).read_text("utf-8").splitlines()
    except OSError as error:
        return [f"{LIST} cannot be read: {error.strerror}"]
    expected = {name: digest for digest, name in (line.split() for line in lines if line.strip())}
    found = ((name, _problem(folder / name, expected.get(name))) for name in names)
    return [f"{name} {problem}" for name, problem in found if problem]


def _problem(path: Path, expected: str | None) -> str:
    if expected is None:
        return f"is not listed in {LIST}"
    if not path.is_file():
        return "is missing"
    return "" if sha256(path) == expected else f"is damaged: its SHA-256 is not the one in {LIST}"


def write_list(folder: Path, names: Iterable[str]) -> None:
    """The list, as `sha256sum` words it."""
    (folder / LIST).write_text("".join(f"{sha256(folder / name)}  {name}\n" for name in names), "utf-8")
