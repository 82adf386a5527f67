"""What requests hold and what answers look like, for FastAPI to check the former and to document both; and the answers.

Answers are our own records with the addresses of pages, pictures and files beside them. They are not made of the
classes that describe them, but written by orjson straight from the records: to copy ten sources with all their passages
into dictionaries first costs more than everything else that HTTP adds to a question. A test holds them to the schemas.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import fields
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

import orjson
from fastapi import APIRouter, Depends, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from starlette.responses import Response

from research.answer import CheckedSentence
from research.models import MatchedRegion, PageResult, ResearchContext, SearchResults, SourceDocument
from research.records import DocumentInfo
from research.request import LONGEST_QUESTION, Parameter
from research.schema import maybe, several, shape
from research.service.problems import only_for_owner
from research.service.service import Service

if TYPE_CHECKING:
    from collections.abc import Sequence

    from research.answer import CheckedAnswer
    from research.models import Coverage, Item, PageResult, PageView, ResearchContext, SearchResults, SourceDocument
    from research.records import DocumentInfo

_QUESTION = Parameter("question", "text", "What is asked.", most=LONGEST_QUESTION)
_NAME = Parameter("name", "text", "What something is called.", most=4096)

Question = Annotated[
    str, Field(min_length=1, max_length=_QUESTION.most), AfterValidator(lambda text: _QUESTION.read(text, "question"))
]
Name = Annotated[
    str, Field(min_length=1, max_length=_NAME.most), AfterValidator(lambda text: _NAME.read(text, "a name"))
]


class Body(BaseModel):
    """Unknown fields are refused: a misspelt one would be ignored silently."""

    model_config = ConfigDict(extra="forbid")


class ProblemDocument(BaseModel):
    """RFC 9457."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str = ""
    hint: str = Field(default="", description="What to do next.")
    instance: str = Field(default="", description="The request's id.")
    errors: list[dict[str, Any]] = Field(default_factory=list)


def answer(called: str, record: type | None = None, only: str = "", /, **beside: Any) -> Any:
    """An answer document of this name, made of a record; fields may be added."""
    return shape(record, called=called, only=only, open=True, **beside)


_PLACE: dict[str, Any] = {"page_url": str, "image_url": str | None, "thumbnail_url": str | None, "file_url": str}
_PAGE = "doc_id filename page page_label ref citation relevance_score"
_OPEN = list[dict[str, Any]]

AskDocument = answer(
    "AskDocument",
    ResearchContext,
    "query confidence quotes total_tokens max_tokens truncated formatted_text",
    answer=str,
    answer_kind=Literal["quotes", "written", "none"],
    checks=list[CheckedSentence],
    sources=several(
        answer("SourcePage", SourceDocument, f"{_PAGE} markdown_content passages", citation=int, **_PLACE)
        | answer(
            "SourceItem",
            SourceDocument,
            "title markdown_content relevance_score ref link",
            citation=int,
            kind=Literal["code", "commit", "memory", "experience", "value"],
            name=str,
            metadata=dict[str, Any],
        )
    ),
    session=maybe(dict[str, str | int]),
)
SearchDocument = answer(
    "SearchDocument",
    SearchResults,
    "query confidence",
    results=several(answer("Result", PageResult, f"{_PAGE} snippet", **_PLACE)),
)
SessionDocument = answer("SessionDocument", session=str, turns=_OPEN)
DocumentBody = answer("DocumentBody", DocumentInfo, tags=list[str], url=str, file_url=str, thumbnail_url=str)
DocumentsBody = answer("DocumentsBody", documents=several(DocumentBody), total=int)
PageBody = answer(
    "PageBody",
    SourceDocument,
    "doc_id file_id filename title page page_label ref passages",
    num_pages=int,
    markdown=str,
    boxes=list[MatchedRegion],
    matches=list[tuple[int, int]],
    previous_url=str | None,
    next_url=str | None,
    **_PLACE,
)
OutlineBody = answer("OutlineBody", DocumentInfo, "doc_id filename", entries=_OPEN, pages=_OPEN)
TagsBody = answer("TagsBody", tags=_OPEN)
StatusBody = answer(
    "StatusBody",
    **dict.fromkeys(("version", "model", "principal", "tenant"), str),
    **dict.fromkeys(("documents", "pages"), int),
    **dict.fromkeys(("empty", "ingest_allowed"), bool),
)


DOCUMENTS = "/api/documents"


Handler = Callable[..., Awaitable[Any]]


class Routes(APIRouter):
    """Routes whose handlers return a document of ours, or a response."""

    def answer(
        self, route: str, summary: str, model: Any = None, *, status: int = 200, **more: Any
    ) -> Callable[[Handler], Handler]:
        """`route` is a method and a path; `model` describes the document."""
        method, _, path = route.partition(" ")
        known = {status: {"model": model}} if model is not None else {}
        more["responses"] = known | more.get("responses", {})

        def add(handler: Handler) -> Handler:
            @wraps(handler)
            async def answered(*args: Any, **values: Any) -> Response:
                made = await handler(*args, **values)
                return made if isinstance(made, Response) else json_response(made, status)

            options = {"status_code": status, "response_class": Response, "response_model": None, **more}
            self.add_api_route(path, answered, methods=[method], summary=summary, **options)
            return handler

        return add


async def _acting(request: Request) -> Service:
    service: Service = request.app.state.service
    return service.acting_as(request.state.caller)


Own = Annotated[Service, Depends(_acting)]
"""The service, whose index is seen as whoever asks may see it."""


def for_owner(what: str) -> Any:
    """A dependency that lets nobody but the owner do this."""

    async def check(request: Request) -> None:
        if not request.state.caller.owner:
            raise only_for_owner(what)

    return Depends(check)


def json_response(document: Any, status: int = 200) -> Response:
    return Response(to_json(document), status, media_type="application/json")


def to_json(document: Any) -> bytes:
    return orjson.dumps(document, default=_other, option=orjson.OPT_NON_STR_KEYS)


def _other(value: object) -> object:
    if isinstance(value, tuple | set | frozenset):
        return list(value)
    raise TypeError(type(value).__name__)


def document_url(doc_id: str) -> str:
    return f"{DOCUMENTS}/{quote(doc_id, safe='')}"


def place(doc_id: str, page: int, *, image: bool) -> dict[str, str | None]:
    """Where a page, its pictures and its file are."""
    document = document_url(doc_id)
    here = f"{document}/pages/{page}"
    return {
        "page_url": here,
        "image_url": f"{here}/image" if image else None,
        "thumbnail_url": f"{here}/thumbnail" if image else None,
        "file_url": f"{document}/file#page={page}",
    }


def ask_document(context: ResearchContext, answer: CheckedAnswer | None = None) -> dict[str, Any]:
    """By the names of seed 004. Without a model's answer the quotes stand in its place, with their citations."""
    written = answer.written if answer is not None else None
    composed = written is not None and bool(written.text.strip())
    kind = "written" if composed else "quotes" if context.quotes else "none"
    numbered = context.get_citation_map().items()
    document = _fields(context) | {
        "schema": "ctx.research.ask/1",
        "answer": written.text if composed and written is not None else quoted(context),
        "answer_kind": kind,
        "checks": list(answer.sentences) if answer is not None else [],
        "written": written,
        "sources": [_source(source, number, mixed=bool(context.types)) for number, source in numbered],
        "coverage": _coverage(context.coverage),
    }
    session, turn = document.pop("session"), document.pop("turn")
    if session:
        document["session"] = {"name": session, "turn": turn}
    return {name: value for name, value in document.items() if name != "follows" and (name != "types" or value)}


def quoted(context: ResearchContext) -> str:
    """The quotes as an answer: a line each, with its citation, and what it is of, if that is no page."""
    sources = context.get_citation_map()
    names = {number: "" if source.page else f" ({source.label})" for number, source in sources.items()}
    lines = (f"{' '.join(each.text.split())} [{each.citation}]{names[each.citation]}" for each in context.quotes)
    return "\n".join(lines)


def search_document(found: SearchResults) -> dict[str, Any]:
    results = [_result(result) for result in found.results]
    document = {"schema": "ctx.research.search/1", "results": results, "coverage": _coverage(found.coverage)}
    return _fields(found) | document


def _coverage(coverage: Coverage) -> dict[str, Any]:
    return {"complete": coverage.complete} | _fields(coverage)


def page_document(view: PageView, matches: Sequence[tuple[int, int]]) -> dict[str, Any]:
    item: Item = view.item
    facts, page = item.metadata, int(item.ref.part)
    doc_id = item.ref.key

    def neighbour(number: int) -> str | None:
        return f"{document_url(doc_id)}/pages/{number}" if 0 < number <= view.num_pages else None

    return {
        "schema": "ctx.research.page/1",
        "doc_id": doc_id,
        "file_id": facts.get("file_id", ""),
        "filename": facts["filename"],
        "title": item.title,
        "page": page,
        "num_pages": view.num_pages,
        "page_label": facts["page_label"],
        "section_path": facts["section_path"] or None,
        "markdown": item.text,
        "ocr": bool(facts["ocr"]),
        "error": view.error,
        "suspicious": item.signals,
        "ref": str(item.ref),
        "passages": item.passages,
        "boxes": [{"box": region.box, "score": region.score} for region in item.regions],
        "matches": matches,
        "previous_url": neighbour(page - 1),
        "next_url": neighbour(page + 1),
        **place(doc_id, page, image=bool(facts["image_path"])),
    }


def document_of(info: DocumentInfo, tags: Sequence[str]) -> dict[str, Any]:
    here = document_url(info.doc_id)
    return {
        **_fields(info),
        "tags": tags,
        "url": here,
        "file_url": f"{here}/file",
        "thumbnail_url": f"{here}/pages/1/thumbnail",
    }


def _source(source: SourceDocument, citation: int, *, mixed: bool) -> dict[str, Any]:
    image = source.image_path is not None
    told = {"citation": citation} | ({"kind": source.kind, "name": source.name} if mixed else {})
    if source.kind != "page":
        return told | source.to_dict()
    return told | _fields(source) | place(source.doc_id, source.page, image=image)


def _result(result: PageResult) -> dict[str, Any]:
    return _fields(result) | place(result.doc_id, result.page, image=result.image_path is not None)


def _fields(record: Any) -> dict[str, Any]:
    """The fields of a record, not those of what it holds, and none that is not shown."""
    return {each.name: getattr(record, each.name) for each in fields(record) if each.repr}
