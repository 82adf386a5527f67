"""What requests hold and what answers look like, for FastAPI to check the former and to document both.

Answers are not made of these classes: they are written straight from our own records, which are checked already. A test
holds real answers to these schemas.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from research.request import LONGEST_QUESTION


def _clean(text: str) -> str:
    """Half a character, which JSON can spell, is in no document and is taken by no database."""
    text = text.encode("utf-8", "replace").decode().replace("\0", " ").strip()
    if not text:
        raise ValueError("the question is empty")
    return text


def _text(text: str) -> str:
    if "\0" in text or not text.strip():
        raise ValueError("an empty text, or one with NUL, names nothing")
    return text.encode("utf-8", "replace").decode()


Question = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST_QUESTION, examples=["How long is parental leave?"]),
    AfterValidator(_clean),
]
Name = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_text)]


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


class Answer(BaseModel):
    """What every answer document allows: fields may be added."""

    model_config = ConfigDict(extra="allow")


class ConfidenceDocument(Answer):
    value: float
    level: Literal["high", "medium", "low", "none"]


class QuoteDocument(Answer):
    text: str
    citation: int
    ref: str
    page: int
    score: float


class PassageDocument(Answer):
    text: str
    score: float
    box: tuple[float, float, float, float] | None
    start: int
    end: int


class PlaceDocument(Answer):
    """A page, and where its parts are."""

    doc_id: str
    filename: str
    page: int = Field(description="Physical, from 1.")
    page_label: str
    ref: str
    page_url: str
    image_url: str | None
    thumbnail_url: str | None
    file_url: str


class SourceDocumentBody(PlaceDocument):
    citation: int
    relevance_score: float
    markdown_content: str
    passages: list[PassageDocument]


class SourceItemBody(Answer):
    """Something that is no page; only where `types` were asked."""

    citation: int
    kind: Literal["code", "commit", "memory", "experience", "value"]
    name: str = Field(description="As its header has it, after the number.")
    title: str
    markdown_content: str
    relevance_score: float
    ref: str
    link: str
    metadata: dict[str, Any]


class AskDocument(Answer):
    query: str
    answer: str
    answer_kind: Literal["quotes", "written", "none"]
    confidence: ConfidenceDocument | None
    quotes: list[QuoteDocument]
    checks: list[dict[str, Any]]
    sources: list[SourceDocumentBody | SourceItemBody]
    total_tokens: int
    max_tokens: int
    truncated: bool
    formatted_text: str
    session: dict[str, str | int] | None = Field(default=None, description="Its name, and the turn this was kept as.")


class SessionDocument(Answer):
    session: str
    turns: list[dict[str, Any]]


class ResultDocument(PlaceDocument):
    citation: int
    relevance_score: float
    snippet: str


class SearchDocument(Answer):
    query: str
    results: list[ResultDocument]
    confidence: ConfidenceDocument | None


class DocumentBody(Answer):
    doc_id: str
    file_id: str
    filename: str
    title: str
    num_pages: int
    timestamp: str
    tags: list[str]
    url: str
    file_url: str
    thumbnail_url: str


class DocumentsBody(Answer):
    documents: list[DocumentBody]
    total: int


class PageBody(PlaceDocument):
    title: str
    num_pages: int
    markdown: str
    passages: list[PassageDocument]
    boxes: list[dict[str, Any]]
    matches: list[tuple[int, int]]
    previous_url: str | None
    next_url: str | None


class OutlineBody(Answer):
    doc_id: str
    filename: str
    entries: list[dict[str, Any]]
    pages: list[dict[str, Any]]


class TagsBody(Answer):
    tags: list[dict[str, Any]]


class StatusBody(Answer):
    version: str
    documents: int
    pages: int
    empty: bool
    ingest_allowed: bool
    model: str
    principal: str
    tenant: str
