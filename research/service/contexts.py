"""Context of several sources over HTTP (seed 002): `/api/context` and `/api/premortem`.

Memories are those of whoever asks, by their token. A context in which nothing was found is an empty one, with 200.

Context packages over HTTP (seed 003): built for a request, and given again by their id.

Who asks, and whose things they see, comes from the token. A package in which nothing may be seen, or nothing was found,
is an empty one, with 200.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field
from starlette.responses import Response

from research.errors import CtxError
from research.governance import Principal
from research.models import Coverage
from research.packages import ContextBuildRequest, ContextPackage
from research.request import MOST_ITEMS, SOURCE_TYPES, AskRequest
from research.schema import shape
from research.service import schemas
from research.service.answers import json_response
from research.service.problems import only_for_owner
from research.service.questions import Reads
from research.service.schemas import answer
from research.settings import MOST_TOKENS
from research.sources import ContextItem, FormattedContext

if TYPE_CHECKING:
    from research.governance import MemoryAccessAudit
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
    router = APIRouter(tags=["context"], default_response_class=Response)

    @router.post(
        "/api/context",
        summary="What memories, code, experiences, values, commits and documents say, as markdown within a budget",
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


AuditDocument = answer("AuditDocument", entries=list[dict[str, Any]])


_PackageId = Annotated[str, Path(min_length=1, max_length=64, pattern="^[0-9a-f]+$")]


def packages_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["packages"], default_response_class=Response)

    @router.post(
        "/knowledge/context/build",
        summary="A context package for a task: ranked sources of every kind, governed, within a hard token budget",
        responses={200: {"model": ContextPackage}},
    )
    async def build(body: ContextBuildRequest, request: Request) -> Response:
        principal = caller_of(request)

        def work(index: Index) -> ContextPackage:
            return index.acting_as(principal).packages.build(body)

        return _answer(await service.asked(work))

    @router.get(
        "/knowledge/context/{package_id}",
        summary="A package by its id, from the cache; where its time is over it is built anew from its request",
        responses={200: {"model": ContextPackage}},
    )
    async def package(package_id: _PackageId, request: Request) -> Response:
        principal = caller_of(request)

        def work(index: Index) -> ContextPackage:
            return index.acting_as(principal).packages.get(package_id)

        return _answer(await service.asked(work))

    @router.get(
        "/knowledge/audit",
        summary="Who was shown what, by which decision, the newest first; for the owner alone",
        responses={200: {"model": AuditDocument}, 403: {"description": "Only the owner may read the audit"}},
    )
    async def audit(
        request: Request,
        *,
        principal: Annotated[str | None, Query(max_length=1000)] = None,
        tenant: Annotated[str | None, Query(max_length=1000)] = None,
        since: Annotated[str, Query(max_length=40)] = "",
        denied: bool = False,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> Response:
        if not caller_of(request).owner:
            raise only_for_owner("audit")

        def work(index: Index) -> list[MemoryAccessAudit]:
            found = index.policy.audit()
            return found.entries(principal=principal, tenant=tenant, since=since, denied=denied, limit=limit)

        entries = [each.to_dict() for each in await service.look(work)]
        return json_response({"schema": "ctx.research.audit/1", "entries": entries})

    return router


def caller_of(request: Request) -> Principal:
    """Who asks: by the token, or whoever runs the server."""
    caller = request.state.caller
    assert isinstance(caller, Principal)
    return caller


def _answer(package: ContextPackage) -> Response:
    return Response(package.model_dump_json(by_alias=True).encode(), media_type="application/json")
