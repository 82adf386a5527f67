"""The question file: one JSON object a line, with a question and the pages that answer it; and these in an index.

    {"query": "How long is sick pay paid in full?", "gold": [["handbook.pdf", 7]], "qid": "q1", "kind": "text"}

`qid` may be left out and is then the line's number; any further field may serve as a slice. Of questions to memories
the gold are ids (which turn of a long conversation answers), and the turns of each conversation lie beside the file:

    qrels.jsonl          {"qid": "26_0", "conversation": "26", "query": "…", "gold": ["D1:3"], "category": 2}
    26.memories.jsonl    {"id": "D1:3", "speaker": "Anna", "text": "…", "timestamp": "…", "session": "session_1"}
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

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


def document_key(name: str) -> str:
    """What two spellings of one file's name have in common: no folder, no `.pdf`, no capitals."""
    return name.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".pdf")


def _of_a_file(name: str) -> str:
    if not document_key(name):
        raise ValueError("this is no file's name")
    return name


_FileName = Annotated[str, AfterValidator(_of_a_file)]


class _Line(BaseModel):
    """A line of a file of questions; whatever else stands on it is a field."""

    model_config = ConfigDict(strict=True, extra="allow")
    query: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    qid: int | str | None = None


class _PageLine(_Line):
    gold: Annotated[list[tuple[_FileName, Annotated[int, Field(ge=1)]]], Field(min_length=1)]


class _MemoryLine(_Line):
    gold: Annotated[list[str], Field(min_length=1)]
    conversation: Annotated[str, StringConstraints(pattern=r"^[^/\\\x00]+$")]


_Kind = TypeVar("_Kind")
_OBJECT = TypeAdapter(dict[str, Any])


def read_questions(path: Path) -> list[Question]:
    """Read all questions of a file. Raises `UsageError` with file, line and reason for the first line that is wrong."""
    found: dict[str, Question] = {}
    for number, line in _lines(path, TypeAdapter(_PageLine), FORMAT):
        qid = number if line.qid is None else line.qid
        if str(qid) in found:
            raise _wrong(path, number, f"the qid {qid!r} stands on line {found[str(qid)].line} already", FORMAT)
        found[str(qid)] = Question(qid, line.query, tuple(line.gold), line.model_extra or {}, number)
    if not found:
        raise UsageError(f"{path} holds no questions", hint=FORMAT)
    return list(found.values())


def _lines(path: Path, kind: TypeAdapter[_Kind], hint: str) -> Iterator[tuple[int, _Kind]]:
    """Read a file of JSON, one object a line; each comes with its line's number."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="name a file of questions, one a line") from None
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if not line.strip():
            continue
        try:
            yield number, kind.validate_json(line)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise _wrong(path, number, f"`{place}`: {first['msg']}" if place else first["msg"], hint) from None


def _wrong(path: Path, line: int, reason: str, hint: str) -> UsageError:
    return UsageError(f"{path}:{line}: {reason}", hint=hint)


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


@dataclass(frozen=True, slots=True)
class MemorySet:
    questions: list[Question]  # gold are ids; the field `conversation` says where
    memories: dict[str, list[dict[str, Any]]]  # of each conversation, in order


def asks_memories(path: Path) -> bool:
    """Tell by its first line whether a file of questions names memories, and not pages."""
    gold = next((entry.get("gold") for _, entry in _lines(path, _OBJECT, FORMAT)), None)
    return isinstance(gold, list) and bool(gold) and isinstance(gold[0], str)


def read_set(path: Path) -> MemorySet:
    """Read the questions, and the memories of the conversations they name. Raises UsageError for what is wrong."""
    questions: list[Question] = []
    for number, line in _lines(path, TypeAdapter(_MemoryLine), MEMORY_FORMAT):
        qid = str(number if line.qid is None else line.qid)
        others = {"conversation": line.conversation, **(line.model_extra or {})}
        questions.append(Question(qid, line.query, tuple((name, NO_PAGE) for name in line.gold), others, number))
    if not questions:
        raise UsageError(f"{path} holds no questions", hint=MEMORY_FORMAT)
    names = dict.fromkeys(conversation_of(question) for question in questions)
    return MemorySet(questions, {name: _memories(path.parent, name) for name in names})


def conversation_of(question: Question) -> str:
    return str(question.fields["conversation"])


def _memories(folder: Path, name: str) -> list[dict[str, Any]]:
    path = folder / f"{name}.memories.jsonl"
    if not path.is_file():
        raise UsageError(f"the memories of the conversation {name!r} are not there: {path}", hint=MEMORY_FORMAT)
    return [entry for _, entry in _lines(path, _OBJECT, MEMORY_FORMAT)]


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
