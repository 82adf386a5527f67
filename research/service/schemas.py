"""What requests hold and what answers look like, for FastAPI to check the former and to document both.

Answers are not made of these classes: they are written straight from our own records, which are checked already. A test
holds real answers to these schemas.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from research.filters import Filters
from research.models import CONFIDENCE_LEVELS
from research.settings import Mode, Settings

LONGEST_QUESTION = 20_000  # characters; more than a page is no question

_RULES = {each.name: each.metadata["rule"] for each in fields(Settings)}


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


def _bounds(name: str) -> Any:
    """Of the setting of this name, so that a request may ask for what a flag may."""
    return Field(ge=_RULES[name].minimum, le=_RULES[name].maximum)


Question = Annotated[
    str,
    Field(min_length=1, max_length=LONGEST_QUESTION, examples=["How long is parental leave?"]),
    AfterValidator(_clean),
]
Name = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_text)]
Names = Annotated[list[Name], Field(max_length=1000)]
Results = Annotated[int, _bounds("num_results"), Field(description="Pages to find.")]
Sources = Annotated[int, _bounds("max_sources"), Field(description="Pages to cite at most.")]
Tokens = Annotated[int, _bounds("max_tokens"), Field(description="The token budget; it holds exactly.")]
Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False, description="Sources below it are left out.")]
Level = Annotated[str, Field(pattern=f"^({'|'.join(CONFIDENCE_LEVELS)}|0(\\.\\d+)?|1(\\.0+)?)$", max_length=20)]
Confidence = Annotated[
    Level | Score, Field(description="Nothing is cited if confidence is below this level or number.")
]
PageRanges = Annotated[str, Field(max_length=1000, examples=["3-5,8"], description="Physical pages, from 1.")]
Time = Annotated[str, Field(max_length=40, examples=["2026-05", "2026-05-31"])]


SourceType = Literal["documents", "code", "commits", "memories", "experiences", "values"]


class Body(BaseModel):
    """Unknown fields are refused: a misspelt one would be ignored silently."""

    model_config = ConfigDict(extra="forbid")


class FilterBody(Body):
    """What a question is restricted to; empty fields restrict nothing."""

    documents: Names = Field(default_factory=list, description="Names, patterns, titles or ids: any of them.")
    not_documents: Names = Field(default_factory=list)
    under: Names = Field(default_factory=list, description="Folders.")
    pages: PageRanges = ""
    since: Time = ""
    until: Time = ""
    tags: Names = Field(default_factory=list, description="All of them.")

    def filters(self) -> Filters:
        """Raises UsageError for pages and times that nobody can read."""
        return Filters(
            documents=tuple(self.documents),
            not_documents=tuple(self.not_documents),
            under=tuple(self.under),
            pages=self.pages.strip(),
            since=self.since.strip(),
            until=self.until.strip(),
            tags=tuple(self.tags),
        )


class SearchBody(Body):
    """A question for ranked pages."""

    query: Question
    num_results: Results | None = None
    mode: Mode | None = Field(default=None, description="Which legs search; hybrid is all of them.")
    documents: Names | None = Field(default=None, description="Only these: names, patterns, titles or ids.")
    filters: FilterBody | None = None
    min_score: Score | None = None
    min_confidence: Confidence | None = None


class AskBody(SearchBody):
    """A question for cited context."""

    max_sources: Sources | None = None
    max_tokens: Tokens | None = None
    extent: Literal["fit", "passages", "pages"] = Field(
        default="fit", description="Passages first and as much as fits, nothing but passages, or whole pages."
    )
    write: bool | None = Field(
        default=None, description="Whether the configured model writes an answer; by default it does, if there is one."
    )
    stream: bool = Field(default=False, description="Answer with server-sent events: context, piece, answer.")
    types: Annotated[list[SourceType], Field(min_length=1, max_length=20)] | None = Field(
        default=None, description="Which sources are asked, memories those of the token's tenant. Left out: documents."
    )
    session: Name | None = Field(default=None, description="Go on with this conversation, of the token's tenant.")
    turn: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Ask again what was this turn of the session: nothing is kept."
    )


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
