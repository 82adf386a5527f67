"""Context of several sources over HTTP (seed 002): `/api/context` and `/api/premortem`.

Memories are those of whoever asks, by their token. A context in which nothing was found is an empty one, with 200.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from research.errors import CtxError
from research.models import Coverage
from research.request import MOST_ITEMS, SOURCE_TYPES, AskRequest
from research.schema import shape
from research.service import schemas
from research.service.answers import json_response
from research.service.requests import Reads
from research.settings import MOST_TOKENS
from research.sources.records import ContextItem, FormattedContext

if TYPE_CHECKING:
    from research.index import Index
    from research.service.service import Service

_Limit = Annotated[int, Field(ge=1, le=MOST_ITEMS, description="Items of each source to look at.")]
_Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"\S")]


class PremortemBody(schemas.Body):
    """Before risky work in a domain."""

    domain: _Name = Field(examples=["debugging"])
    strategy: _Name | None = Field(default=None, examples=["systematic-elimination"])
    limit: _Limit = 10
    max_tokens: Annotated[int, Field(ge=1, le=MOST_TOKENS, description="The token budget.")] = 1500


ContextDocument = schemas.answer(
    "ContextDocument", FormattedContext, items=list[ContextItem], coverage=shape(Coverage, only="sources notes")
)


def contexts_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["context"])

    @router.post(
        "/api/context",
        summary="What memories, code, experiences, values, commits and documents say, as markdown within a budget",
        response_class=Response,
        responses={200: {"model": ContextDocument}},
    )
    async def context(body: Annotated[AskRequest, Reads("POST context")], request: Request) -> Response:
        asked = replace(body, tenant=request.state.caller.tenant, types=body.types or SOURCE_TYPES)
        found = answered(await service.acting_as(request.state.caller).asked(lambda index: index.context(asked)))
        told = {"schema": "ctx.research.context/1", "query": asked.question, "types": asked.types}
        return json_response({**told, **found.to_dict()})

    @router.post(
        "/api/premortem",
        summary="What went wrong before in a domain, and with a strategy",
        response_class=Response,
        responses={200: {"model": ContextDocument}},
    )
    async def premortem(body: PremortemBody, request: Request) -> Response:
        def work(index: Index) -> FormattedContext:
            return index.premortem(body.domain, body.strategy, limit=body.limit, max_tokens=body.max_tokens)

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
