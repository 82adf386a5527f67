"""What requests hold and what answers look like, for FastAPI to check the former and to document both.

Answers are not made of these classes: they are written straight from our own records, which are checked already. A test
holds real answers to these schemas.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from research.answer import CheckedSentence
from research.models import MatchedRegion, PageResult, ResearchContext, SearchResults, SourceDocument
from research.parameters import Parameter
from research.records import DocumentInfo
from research.request import LONGEST_QUESTION
from research.schema import maybe, several, shape

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


class LoginBody(Body):
    token: Annotated[str, Field(min_length=1, max_length=512)]


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
