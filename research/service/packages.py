"""Context packages over HTTP (seed 003): built for a request, and given again by their id.

Who asks, and whose things they see, comes from the token. A package in which nothing may be seen, or nothing was found,
is an empty one, with 200.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from research.governance.access import Principal
from research.packages.package import ContextPackage
from research.packages.request import ContextBuildRequest
from research.service.answers import json_response
from research.service.problems import only_for_owner
from research.service.schemas import answer

if TYPE_CHECKING:
    from research.governance.audit_chain import MemoryAccessAudit
    from research.index import Index
    from research.service.service import Service


AuditDocument = answer("AuditDocument", entries=list[dict[str, Any]])


_PackageId = Annotated[str, Path(min_length=1, max_length=64, pattern="^[0-9a-f]+$")]


def packages_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["packages"])

    @router.post(
        "/knowledge/context/build",
        summary="A context package for a task: ranked sources of every kind, governed, within a hard token budget",
        response_class=Response,
        responses={200: {"model": ContextPackage}},
    )
    async def build(body: ContextBuildRequest, request: Request) -> Response:
        principal = caller_of(request)

        def work(index: Index) -> ContextPackage:
            return index.acting_as(principal).build_package(body)

        return _answer(await service.asked(work))

    @router.get(
        "/knowledge/context/{package_id}",
        summary="A package by its id, from the cache; where its time is over it is built anew from its request",
        response_class=Response,
        responses={200: {"model": ContextPackage}},
    )
    async def package(package_id: _PackageId, request: Request) -> Response:
        principal = caller_of(request)

        def work(index: Index) -> ContextPackage:
            return index.acting_as(principal).package(package_id)

        return _answer(await service.asked(work))

    @router.get(
        "/knowledge/audit",
        summary="Who was shown what, by which decision, the newest first; for the owner alone",
        response_class=Response,
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
            found = index.audit()
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
