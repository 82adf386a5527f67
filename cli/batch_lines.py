"""The lines of `ctx ask --batch`: a question each, plain or a JSON object. A line that cannot be asked says why.

`cli/JSON.md` has the rules for those who write them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

from cli.output import say
from research.errors import CtxError, UsageError
from research.request import AskRequest, read_request

_MOST_BYTES = 1 << 20  # of a line; a longer one is no question
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Line:
    """What one line asks."""

    number: int
    request: AskRequest | None = None
    id: str | int | float | None = None
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


def read_lines(stream: BinaryIO, base: AskRequest) -> Iterator[Line]:
    """Each line as it comes, so that whoever writes them may wait for an answer before the next. `base` holds for all.

    The stream is closed where it is read, at its end: to close a pipe that somebody reads from waits for the reader.
    """
    with nullcontext() if stream is sys.stdin.buffer else closing(stream):
        yield from _lines(stream, base)


def _lines(stream: BinaryIO, base: AskRequest) -> Iterator[Line]:
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
            yield parse_line(number, raw.removeprefix(_BOM) if number == 1 else raw, base)


def parse_line(number: int, raw: bytes, base: AskRequest) -> Line:
    """An object if it begins with a brace, else the question itself."""
    known_id = None
    try:
        text = _text(raw)
        given = _object(text)
        if given is None:
            return Line(number, replace(base, question=text), error=None if text else _empty())
        known_id = given.get("id") if _is_id(given.get("id")) else None
        return Line(number, read_request("batch", _said(given), base), known_id)
    except CtxError as error:
        return Line(number, id=known_id, error=error)


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


def _said(given: Mapping[str, Any]) -> dict[str, Any]:
    """An object's fields without its id, the question under one name."""
    if "question" in given and "query" in given:
        raise UsageError("question and query are the same key; give one of them", hint=_EXAMPLE)
    if given.get("id") is not None and not _is_id(given["id"]):
        raise UsageError("id must be a text or a number", hint=_EXAMPLE)
    said = {"question" if name == "query" else name: value for name, value in given.items() if name != "id"}
    question = said.get("question", "")
    if question is None or (isinstance(question, str) and not question.strip()):
        raise _empty()
    if empty := next(
        (name for name, value in said.items() if value == []), ""
    ):  # a list that came out empty is not "all"
        raise UsageError(f"{empty} is empty", hint=_EXAMPLE)
    return said
