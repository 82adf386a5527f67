"""The question file: one JSON object a line, with a question and the pages that answer it.

    {"query": "How long is sick pay paid in full?", "gold": [["handbook.pdf", 7]], "qid": "q1", "kind": "text"}

`qid` may be left out and is then the line's number; any further field may serve as a slice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from research.errors import UsageError

FORMAT = 'a line is: {"query": "…", "gold": [["file.pdf", 3]]}'

PageKey = tuple[str, int]
"""A document's name as `document_key` has it, and a physical page."""


@dataclass(frozen=True, slots=True)
class Question:
    qid: str | int  # as the file has it, so that a run file can be joined with it
    query: str
    gold: tuple[tuple[str, int], ...]  # names as written
    fields: dict[str, Any] = field(default_factory=dict)  # everything else on the line
    line: int = 0


class _WrongLineError(Exception):
    """What is wrong with a line; its file and number are added where they are known."""


def document_key(name: str) -> str:
    """What two spellings of one file's name have in common: no folder, no `.pdf`, no capitals."""
    return name.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".pdf")


def read_questions(path: Path) -> list[Question]:
    """All questions of a file. Raises `UsageError` with file, line and reason for the first line that is wrong."""
    found: list[Question] = []
    lines: dict[str, int] = {}
    for number, entry in read_lines(path):
        try:
            question = _question(entry, number, lines)
        except _WrongLineError as error:
            raise _wrong(path, number, str(error)) from None
        lines[str(question.qid)] = number
        found.append(question)
    if not found:
        raise UsageError(f"{path} holds no questions", hint=FORMAT)
    return found


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a file, one a line, each with the line's number. Raises UsageError for the first that is none."""
    for number, text in _lines(path):
        try:
            entry = _parsed(text)
        except _WrongLineError as error:
            raise _wrong(path, number, str(error)) from None
        yield number, entry


def field_values(question: Question, name: str) -> list[str]:
    """A field's values by its dotted name: one, or each of a list; none where the question lacks it."""
    value: Any = question.fields
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            return []
        value = value[part]
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def check_field(questions: Sequence[Question], name: str) -> None:
    """Raise if no question has the field: a table of one row called nothing would help nobody."""
    if any(field_values(question, name) for question in questions):
        return
    known: dict[str, None] = {}
    for question in questions:
        for key, value in question.fields.items():
            known.update(dict.fromkeys([f"{key}.{inner}" for inner in value] if isinstance(value, dict) else [key]))
    there = f"fields there are: {', '.join(known)}" if known else "they have no fields but query, gold and qid"
    raise UsageError(f"no question has a value for the field {name!r}", hint=there)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="name a file of questions, one a line") from None
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise _wrong(path, number, "not UTF-8") from None
        if text.strip():
            yield number, text


def _parsed(text: str) -> dict[str, Any]:
    try:
        entry = json.loads(text, parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise _WrongLineError(f"no valid JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise _WrongLineError("no valid JSON: nested too deeply") from None
    except ValueError as error:  # a number of thousands of digits
        raise _WrongLineError(f"no valid JSON: {error}") from None
    if not isinstance(entry, dict):
        raise _WrongLineError(f"an object is needed, not {_kind(entry)}")
    return entry


def _question(entry: dict[str, Any], line: int, lines: dict[str, int]) -> Question:
    """`lines` holds where each qid before it stands."""
    query = entry.get("query")
    if not isinstance(query, str) or not query.strip():
        raise _WrongLineError("`query` must be the question's text")
    qid = entry.get("qid", line)
    if isinstance(qid, bool) or not isinstance(qid, str | int):
        raise _WrongLineError(f"`qid` must be text or a whole number, not {_kind(qid)}")
    if str(qid) in lines:
        raise _WrongLineError(f"the qid {qid!r} stands on line {lines[str(qid)]} already")
    others = {name: value for name, value in entry.items() if name not in {"query", "gold", "qid"}}
    return Question(qid, query.strip(), _gold(entry.get("gold")), others, line)


def _gold(pairs: Any) -> tuple[tuple[str, int], ...]:
    if not isinstance(pairs, list) or not pairs:
        raise _WrongLineError("`gold` must be a list of [file name, page], with at least one")
    for pair in pairs:
        if not isinstance(pair, list) or len(pair) != 2 or not isinstance(pair[0], str) or not document_key(pair[0]):
            raise _WrongLineError(f"`gold` holds {json.dumps(pair)[:80]}, which is no [file name, page]")
        page = pair[1]
        if isinstance(page, bool) or not isinstance(page, int):
            raise _WrongLineError(
                f"`gold` names the page {json.dumps(page)[:80]} of {pair[0]}, which is no whole number"
            )
        if page < 1:
            raise _WrongLineError(f"`gold` names page {page} of {pair[0]}; pages count from 1")
    return tuple((name, page) for name, page in pairs)


def _wrong(path: Path, line: int, reason: str) -> UsageError:
    return UsageError(f"{path}:{line}: {reason}", hint=FORMAT)


def _refuse(constant: str) -> Any:
    raise _WrongLineError(f"no valid JSON: {constant}")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
