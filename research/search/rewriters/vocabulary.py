"""Reading tables of what to look for: plain data in TOML, checked before any of it is used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from research.errors import UsageError

# A table is read while a question waits. The one inside the package is a tenth of this.
MOST_BYTES = 100_000
MOST_ENTRIES = 500
MOST_LINES = 40  # words that one entry adds; more would drown the question
_MOST_LETTERS = 80  # of a name or phrase

Groups = tuple[tuple[str, ...], ...]
"""Phrases that stand together on one page; one group is enough."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What a question may call something, and the words that stand in documents instead."""

    names: tuple[str, ...]  # in lower case
    capitals: tuple[str, ...]
    lines: tuple[str, ...]
    rows: tuple[str, ...]
    statements: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    entries: tuple[Entry, ...]
    statements: Mapping[str, Groups]

    def extended(self, other: Table) -> Table:
        return Table((*self.entries, *other.entries), {**self.statements, **other.statements})


def read_table(path: Path, known: Mapping[str, Groups] | None = None) -> Table:
    """The table in a file. `known`: statements that its entries may name beside those it defines."""
    import tomllib

    try:
        if path.stat().st_size > MOST_BYTES:
            raise _wrong(path, f"is larger than {MOST_BYTES:,} bytes")
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _wrong(path, f"cannot be read: {error}") from error
    _check_keys(path, found, {"statements", "entry"}, "the table")
    statements = _statements(path, found.get("statements", {}))
    entries = found.get("entry", [])
    if not isinstance(entries, list) or len(entries) > MOST_ENTRIES:
        raise _wrong(path, f"must hold a list of at most {MOST_ENTRIES} [[entry]] tables")
    usable = {**(known or {}), **statements}
    usual = tuple(statements or usable)
    return Table(tuple(_entry(path, n, entry, usable, usual) for n, entry in enumerate(entries, start=1)), statements)


def _statements(path: Path, found: Any) -> dict[str, Groups]:
    if not isinstance(found, dict):
        raise _wrong(path, "[statements] must be a table")
    read = {}
    for kind, groups in found.items():
        if not isinstance(groups, list) or not groups:
            raise _wrong(path, f"statement {kind!r} must be a list of lists of phrases")
        read[kind] = tuple(_texts(path, group, f"statement {kind!r}") for group in groups)
        if not all(read[kind]):
            raise _wrong(path, f"statement {kind!r} has an empty list of phrases")
    return read


def _entry(path: Path, number: int, found: Any, statements: Mapping[str, Groups], usual: tuple[str, ...]) -> Entry:
    where = f"entry {number}"
    if not isinstance(found, dict):
        raise _wrong(path, f"{where} must be a table")
    _check_keys(path, found, {"names", "capitals", "lines", "rows", "statements"}, where)
    names = tuple(name.lower() for name in _texts(path, found.get("names", []), where))
    capitals = _texts(path, found.get("capitals", []), where)
    lines = found.get("lines", "")
    wanted = _texts(path, found.get("statements", []), where) or usual
    if not names and not capitals:
        raise _wrong(path, f"{where} has neither names nor capitals")
    if not isinstance(lines, str) or not 1 <= len(lines.split()) <= MOST_LINES:
        raise _wrong(path, f"{where} must have `lines` of 1 to {MOST_LINES} words")
    for kind in wanted:
        if kind not in statements:
            raise _wrong(path, f"{where} names the unknown statement {kind!r}; known are: {', '.join(statements)}")
    rows = _texts(path, found.get("rows", []), where)
    return Entry(names, capitals, tuple(lines.split()), rows, wanted)


def _texts(path: Path, found: Any, where: str) -> tuple[str, ...]:
    if not isinstance(found, list) or not all(
        isinstance(text, str) and text.strip() and len(text) <= _MOST_LETTERS for text in found
    ):
        raise _wrong(path, f"{where}: expected a list of texts of up to {_MOST_LETTERS} letters")
    return tuple(found)


def _check_keys(path: Path, found: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in found:
        if key not in known:
            raise _wrong(path, f"{where} has the unknown key {key!r}; known are: {', '.join(sorted(known))}")


def _wrong(path: Path, problem: str) -> UsageError:
    hint = "mend the file, or take it out of the setting vocabulary"
    return UsageError(f"the vocabulary {path}: {problem}", hint=hint)
