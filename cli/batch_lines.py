"""The lines of `ctx ask --batch`: a question each, plain or a JSON object. A line that cannot be asked says why.

`cli/JSON.md` has the rules for those who write them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from itertools import count
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

from cli.output import say
from research.errors import CtxError, UsageError
from research.settings import check

FILTERS = ("doc", "not_doc", "under", "pages", "since", "until", "tag")
SETTINGS = ("max_tokens", "max_sources", "num_results", "mode", "min_score", "min_confidence")
_IN_WORDS = ("mode", "min_confidence")
KEYS = ("question", "query", "id", *SETTINGS, *FILTERS)

_MOST_BYTES = 1 << 20  # of a line; a longer one is no question
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    """What one line asks. `options` are the settings it names, `filters` the filters: they win over the command's."""

    number: int
    question: str = ""
    id: str | int | float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    filters: Mapping[str, Any] = field(default_factory=dict)
    error: CtxError | None = None  # why it cannot be asked


def open_lines(name: str, *, quiet: bool) -> BinaryIO:
    """The file, or stdin for `-`; `read_lines` closes it."""
    if name == "-":
        if sys.stdin.isatty() and not quiet:
            say('ctx: type a question a line, or {"question": "…", "id": 1, "max_tokens": 500}; Ctrl-D ends')
        return sys.stdin.buffer
    try:
        return Path(name).open("rb")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"cannot read {name}: {reason}", hint="name a file with a question a line, or - for stdin"
        ) from error


def read_lines(stream: BinaryIO) -> Iterator[Line]:
    """Each line as it comes, so that whoever writes them may wait for an answer before the next.

    The stream is closed where it is read, at its end: to close a pipe that somebody reads from waits for the reader.
    """
    with nullcontext() if stream is sys.stdin.buffer else closing(stream):
        yield from _lines(stream)


def _lines(stream: BinaryIO) -> Iterator[Line]:
    for number in count(1):
        try:
            raw = stream.readline(_MOST_BYTES + 2)
            if not raw:
                return
            too_long = len(raw.rstrip(b"\r\n")) > _MOST_BYTES
            while too_long and raw and not raw.endswith(b"\n"):
                raw = stream.readline(_MOST_BYTES)
        except OSError as error:
            raise UsageError(f"cannot read the questions: {error.strerror or error}") from error
        if too_long:
            yield Line(number, error=UsageError(f"the line is longer than {_MOST_BYTES:,} bytes"))
        else:
            yield parse_line(number, raw.removeprefix(_BOM) if number == 1 else raw)


def parse_line(number: int, raw: bytes) -> Line:
    """An object if it begins with a brace, else the question itself."""
    try:
        text = _text(raw)
        fields = _object(text)
    except CtxError as error:
        return Line(number, error=error)
    if fields is None:
        return Line(number, text, error=None if text else _empty())
    known_id = fields.get("id") if _is_id(fields.get("id")) else None
    try:
        question, options = _request(fields)
    except CtxError as error:
        return Line(number, id=known_id, error=error)
    filters = {name: fields[name] for name in FILTERS if fields.get(name) is not None}
    return Line(number, question, known_id, options, filters)


def _text(raw: bytes) -> str:
    """Not replaced as the words of a command line are: a whole file in another encoding would be answered wrongly."""
    try:
        return raw.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise UsageError(
            f"the line is not UTF-8: byte 0x{raw[error.start]:02x} at {error.start + 1}",
            hint="convert the file, with iconv -t utf-8 for example",
        ) from error


def _is_id(value: Any) -> bool:
    """Whether it can be given back as it came: an infinite number is none in JSON."""
    return (
        isinstance(value, str | int | float)
        and not isinstance(value, bool)
        and (isinstance(value, str | int) or isfinite(value))
    )


def _object(text: str) -> dict[str, Any] | None:
    """The JSON object of a line; None if it is plain text."""
    if not text.startswith(("{", "[")):
        return None
    try:
        read = json.loads(text)
    except (ValueError, RecursionError) as error:
        if text.startswith("["):  # a question may begin so
            return None
        reason = "it is nested too deeply"
        if isinstance(error, json.JSONDecodeError):
            reason = f"{error.msg} at character {error.pos + 1}"
        elif isinstance(error, ValueError):  # a number of thousands of digits
            reason = "a number in it is too long"
        raise UsageError(f"the line begins with {{ but is no JSON: {reason}", hint=_EXAMPLE) from error
    if not isinstance(read, dict):
        raise UsageError("the line is a JSON array", hint=_EXAMPLE)
    return read


_EXAMPLE = 'a line is a question, or an object: {"question": "…", "id": 1, "max_tokens": 500}'


def _empty() -> UsageError:
    return UsageError("the question is empty", hint=_EXAMPLE)


def _request(fields: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    unknown = [name for name in fields if name not in KEYS]
    if unknown:
        raise UsageError(f"unknown key {unknown[0][:60]!r}", hint=f"known keys: {', '.join(KEYS)}")
    if "question" in fields and "query" in fields:
        raise UsageError("question and query are the same key; give one of them", hint=_EXAMPLE)
    if fields.get("id") is not None and not _is_id(fields["id"]):
        raise UsageError("id must be a text or a number", hint=_EXAMPLE)
    text = fields.get("question", fields.get("query", ""))
    if not isinstance(text, str):
        raise UsageError("the question must be a text", hint=_EXAMPLE)
    question = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace").strip()
    if not question:
        raise _empty()
    return question, {name: _setting(name, fields[name]) for name in SETTINGS if fields.get(name) is not None}


def _setting(name: str, value: Any) -> Any:
    if isinstance(value, str) and name not in _IN_WORDS:  # which a variable may say, but JSON has numbers for
        kind = "a number" if name == "min_score" else "a whole number"
        raise UsageError(f"{name} must be {kind}, not {value[:60]!r}", hint=_EXAMPLE)
    return check(name, value, name)
