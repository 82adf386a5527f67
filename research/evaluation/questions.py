"""The question file: one JSON object a line, with a question and the pages that answer it; and these in an index.

    {"query": "How long is sick pay paid in full?", "gold": [["handbook.pdf", 7]], "qid": "q1", "kind": "text"}

`qid` may be left out and is then the line's number; any further field may serve as a slice. Of questions to memories
the gold are ids (which turn of a long conversation answers), and the turns of each conversation lie beside the file:

    qrels.jsonl          {"qid": "26_0", "conversation": "26", "query": "…", "gold": ["D1:3"], "category": 2}
    26.memories.jsonl    {"id": "D1:3", "speaker": "Anna", "text": "…", "timestamp": "…", "session": "session_1"}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from research.errors import UsageError
from research.records import DocumentInfo
from research.store import Reader

FORMAT = 'a line is: {"query": "…", "gold": [["file.pdf", 3]]}'
MEMORY_FORMAT = (
    'a line is: {"query": "…", "gold": ["id of a memory"], "conversation": "NAME"}, beside NAME.memories.jsonl'
)

PageKey = tuple[str, int]
"""A document's name as `document_key` has it, and a physical page."""

NO_PAGE = 0
"""What stands for the page of a memory."""


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


@dataclass(frozen=True, slots=True)
class MemorySet:
    questions: list[Question]  # gold are ids; the field `conversation` says where
    memories: dict[str, list[dict[str, Any]]]  # of each conversation, in order


def asks_memories(path: Path) -> bool:
    """Whether a file of questions names memories, and not pages: told by its first line."""
    gold = next((entry.get("gold") for _, entry in read_lines(path)), None)
    return isinstance(gold, list) and bool(gold) and isinstance(gold[0], str)


def read_set(path: Path) -> MemorySet:
    """The questions, and the memories of the conversations they name. Raises UsageError for what is wrong."""
    questions = [_memory_question(path, number, entry) for number, entry in read_lines(path)]
    if not questions:
        raise UsageError(f"{path} holds no questions", hint=MEMORY_FORMAT)
    names = dict.fromkeys(conversation_of(question) for question in questions)
    return MemorySet(questions, {name: _memories(path.parent, name) for name in names})


def conversation_of(question: Question) -> str:
    return str(question.fields["conversation"])


def _memory_question(path: Path, number: int, entry: dict[str, Any]) -> Question:
    query, gold, place = (entry.get(name) for name in ("query", "gold", "conversation"))
    sound = isinstance(query, str) and bool(query.strip()) and isinstance(gold, list) and bool(gold)
    if (
        not sound
        or not all(isinstance(name, str) for name in gold or ())
        or not isinstance(place, str)
        or not place
        or set("/\\\0") & set(place)
    ):
        raise UsageError(f"{path}:{number}: this is no question to memories", hint=MEMORY_FORMAT)
    others = {name: value for name, value in entry.items() if name not in {"query", "gold", "qid"}}
    ids = tuple((str(name), NO_PAGE) for name in gold or ())
    return Question(str(entry.get("qid", number)), str(query).strip(), ids, others, number)


def _memories(folder: Path, name: str) -> list[dict[str, Any]]:
    path = folder / f"{name}.memories.jsonl"
    if not path.is_file():
        raise UsageError(f"the memories of the conversation {name!r} are not there: {path}", hint=MEMORY_FORMAT)
    return [entry for _, entry in read_lines(path)]


@dataclass(frozen=True, slots=True)
class Gold:
    """A question with its gold pages under the names that search results carry."""

    question: Question
    pages: frozenset[PageKey]
    doc_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GoldCheck:
    """What an index can be asked, and what of the gold it lacks."""

    askable: list[Gold]
    left_out: list[Question]  # no document of their gold is indexed: any ranking would score 0
    missing: dict[str, int]  # name of a gold document that is not indexed → questions that name it
    beyond: list[str]  # gold pages past their document's end, as file:page


def look_up(catalog: Reader, questions: Sequence[Question]) -> GoldCheck:
    """Find each gold document by its file name, or the name of a copy of it."""
    known = _documents_by_key(catalog)
    check = GoldCheck([], [], {}, [])
    for question in questions:
        documents = {name: known.get(document_key(name), []) for name, _ in question.gold}
        for name in (name for name, found in documents.items() if not found):
            check.missing[name] = check.missing.get(name, 0) + 1
        doc_ids = sorted({info.doc_id for found in documents.values() for info in found})
        if not doc_ids:
            check.left_out.append(question)
            continue
        pages: set[PageKey] = set()
        for name, page in question.gold:
            # What is missing stays in the gold: the question can be answered in part only, and scores so.
            pages |= {(document_key(info.filename), page) for info in documents[name]} or {(document_key(name), page)}
            if documents[name] and page > max(info.num_pages for info in documents[name]):
                check.beyond.append(f"{name}:{page}")
        check.askable.append(Gold(question, frozenset(pages), tuple(doc_ids)))
    return check


def _documents_by_key(catalog: Reader) -> dict[str, list[DocumentInfo]]:
    found: dict[str, list[DocumentInfo]] = {}
    copies: dict[str, list[DocumentInfo]] = {}
    for info in catalog.documents.all():
        found.setdefault(document_key(info.filename), []).append(info)
        for path in catalog.documents.paths(info.doc_id):
            copies.setdefault(document_key(path), []).append(info)
    return {**copies, **found}
