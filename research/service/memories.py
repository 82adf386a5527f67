"""Memories and turns over HTTP: the endpoints of a memory service as seeds 000 and 001 call them, so that one ctx can
be the memory of another; and the messages of a turn, built here.

Whose memories are meant is the token's to say. The owner may name any tenant; whoever else names one that is not their
own is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from research.conversation.embedded import EmbeddedMemory
from research.governance.access import Principal
from research.service import memory_schemas as schemas
from research.service.answers import json_response
from research.service.problems import Problem, refused

if TYPE_CHECKING:
    from research.conversation.turns import TurnMaker
    from research.service.service import Service

_FORBIDDEN: dict[int | str, dict[str, Any]] = {403: {"description": "The token is another tenant's"}}


def memories_router(service: Service, maker: TurnMaker) -> APIRouter:
    router = APIRouter(tags=["memories"], responses=_FORBIDDEN)

    def memory_of(request: Request) -> EmbeddedMemory:
        return EmbeddedMemory(service.index.acting_as(request.state.caller))

    async def found(body: schemas.EvaluateBody, request: Request) -> Response:
        payload, memory = with_tenant(body.model_dump(exclude_none=True), request.state.caller), memory_of(request)
        return json_response(await service.turns.run(partial(memory.evaluate, payload)))

    @router.post(
        "/context/evaluate",
        summary="The memories that may matter to a turn",
        response_class=Response,
        responses={200: {"model": schemas.CandidatesDocument}},
    )
    async def evaluate(body: schemas.EvaluateBody, request: Request) -> Response:
        return await found(body, request)

    @router.post(
        "/recall",
        summary="The memories that most likely answer a question",
        response_class=Response,
        responses={200: {"model": schemas.CandidatesDocument}},
    )
    async def recall(body: schemas.EvaluateBody, request: Request) -> Response:
        return await found(body, request)

    @router.post(
        "/memory/remember",
        summary="Remember something; durable when it is answered",
        response_class=Response,
        responses={200: {"model": schemas.RememberedDocument}},
    )
    async def remember(body: schemas.RememberBody, request: Request) -> Response:
        payload = with_tenant(body.model_dump(exclude_none=True), request.state.caller)
        return json_response(await service.looking.run(partial(memory_of(request).tell, payload)))

    @router.post(
        "/memory/remember/batch",
        summary="Remember several things, in order",
        response_class=Response,
        responses={200: {"model": schemas.RememberedBatchDocument}},
    )
    async def remember_batch(body: schemas.RememberBatchBody, request: Request) -> Response:
        payload = with_tenant(body.model_dump(exclude_none=True), request.state.caller)
        return json_response(await service.looking.run(partial(memory_of(request).tell_all, payload)))

    @router.post(
        "/context/turn",
        summary="The messages of a turn: history, memories and documents within a token budget",
        response_class=Response,
        responses={200: {"model": schemas.TurnDocument}},
    )
    async def turn(body: schemas.TurnBody, request: Request) -> Response:
        envelope = with_tenant(_storable(body.model_dump(exclude_none=True)), request.state.caller)
        limit, documents = envelope.pop("max_prompt_tokens"), envelope.pop("documents")
        own = maker.acting_as(request.state.caller)
        work = partial(own.build_now, envelope, max_prompt_tokens=limit, documents=documents)
        built = await service.turns.run(work)
        return json_response({"schema": "ctx.turn/1", **built.to_dict()})

    return router


def with_tenant(payload: Mapping[str, Any], caller: Principal) -> dict[str, Any]:
    """The payload for the caller's tenant, whatever it says. Raises ProblemError if it says another."""
    named = [str(payload[name]).strip() for name in ("tenant_id", "tenant") if payload.get(name) not in (None, "")]
    tenant = named[0] if named and caller.owner else caller.tenant
    if any(each != tenant for each in named):
        detail = "it is for another tenant than the request names"
        raise refused(Problem(403, "Not with this token", detail, "leave tenant_id out"))
    return {**{name: value for name, value in payload.items() if name != "tenant"}, "tenant_id": tenant}


def _storable(value: Any) -> Any:
    """Without halves of characters, which JSON can spell and no answer can hold."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_storable(name): _storable(each) for name, each in value.items()}
    return [_storable(each) for each in value] if isinstance(value, list) else value
