"""Context of several sources over HTTP (seed 002): `/api/context` and `/api/premortem`.

Memories are those of whoever asks, by their token. A context in which nothing was found is an empty one, with 200.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from research.errors import CtxError
from research.service import schemas
from research.service.answers import json_response
from research.sources.assembler import MOST_ITEMS

if TYPE_CHECKING:
    from research.index import Index
    from research.service.service import Service
    from research.sources.records import FormattedContext

Type = Literal["memories", "code", "experiences", "values", "commits", "documents"]
_Limit = Annotated[int, Field(ge=1, le=MOST_ITEMS, description="Items of each source to look at.")]
_Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"\S")]


class ContextBody(schemas.Body):
    """A question for context of several sources."""

    query: schemas.Question
    context_types: Annotated[list[Type], Field(min_length=1, max_length=20)] = Field(
        default_factory=lambda: list(get_args(Type)), description="Left out: all of them."
    )
    limit: _Limit = 20
    max_tokens: schemas.Tokens = 2000
    min_score: schemas.Score | None = None
    same_file: bool = Field(default=False, description="Of code and a commit of one file, only the better one.")
    soft: bool = Field(default=False, description="What is chosen by shares may exceed max_tokens.")


class PremortemBody(schemas.Body):
    """Before risky work in a domain."""

    domain: _Name = Field(examples=["debugging"])
    strategy: _Name | None = Field(default=None, examples=["systematic-elimination"])
    limit: _Limit = 10
    max_tokens: schemas.Tokens = 1500
    soft: bool = False


class ContextItemDocument(schemas.Answer):
    source: Literal["memory", "code", "experience", "value", "commit", "document"]
    content: str
    relevance: float
    score: float
    metadata: dict[str, Any]
    ref: str
    truncated: bool
    suspicious: list[str]


class ContextDocument(schemas.Answer):
    markdown: str
    items: list[ContextItemDocument]
    token_count: int
    max_tokens: int
    limit_exceeded: bool
    sources_used: dict[str, int]
    left_out: dict[str, int]
    duplicates: int
    coverage: dict[str, Any]


def contexts_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["context"])

    @router.post(
        "/api/context",
        summary="What memories, code, experiences, values, commits and documents say, as markdown within a budget",
        response_class=Response,
        responses={200: {"model": ContextDocument}},
    )
    async def context(body: ContextBody, request: Request) -> Response:
        def work(index: Index) -> FormattedContext:
            return index.context(
                body.query,
                body.context_types,
                limit=body.limit,
                max_tokens=body.max_tokens,
                tenant=request.state.caller.tenant,
                soft=body.soft,
                same_file=body.same_file,
                min_score=body.min_score,
            )

        found = answered(await service.acting_as(request.state.caller).asked(work))
        told = {"schema": "ctx.research.context/1", "query": body.query, "types": body.context_types}
        return json_response({**told, **found.to_dict()})

    @router.post(
        "/api/premortem",
        summary="What went wrong before in a domain, and with a strategy",
        response_class=Response,
        responses={200: {"model": ContextDocument}},
    )
    async def premortem(body: PremortemBody, request: Request) -> Response:
        def work(index: Index) -> FormattedContext:
            return index.premortem(
                body.domain, body.strategy, limit=body.limit, max_tokens=body.max_tokens, soft=body.soft
            )

        found = answered(await service.acting_as(request.state.caller).asked(work))
        told = {"schema": "ctx.research.premortem/1", "domain": body.domain, "strategy": body.strategy}
        return json_response({**told, **found.to_dict()})

    return router


def answered(found: FormattedContext) -> FormattedContext:
    """Raise if no source could be asked at all: that is a failure, not an empty answer."""
    if found.failed:
        names = ", ".join(each.name for each in found.coverage.sources)
        raise CtxError(f"no source could be asked: {names}", hint="see the server's log, or run: ctx doctor")
    return found
