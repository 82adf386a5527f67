"""Questions over HTTP: `/api/research/ask` (seed 004), whole or as a stream of events, and `/api/search`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from research.errors import CtxError
from research.service import schemas
from research.service.answers import ask_document, json_response, search_document, to_json
from research.service.problems import problem_of
from research.settings import Mode

if TYPE_CHECKING:
    from research.answer.answering import CheckedAnswer
    from research.models import ResearchContext
    from research.service.service import Service

EVENTS = "text/event-stream"
_ALIVE_SECONDS = 15.0  # a comment keeps proxies from closing a stream in which a model is still thinking

STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def questions_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["questions"])

    @router.post(
        "/api/research/ask",
        summary="Quote what answers a question and cite its pages, within a token budget",
        response_class=Response,
        responses={200: {"model": schemas.AskDocument, "content": {EVENTS: {"schema": {"type": "string"}}}}},
    )
    async def ask(body: schemas.AskBody, request: Request) -> Response:
        if body.stream or EVENTS in request.headers.get("accept", ""):
            stream = _stream(service.acting_as(request.state.caller), body, request)
            return StreamingResponse(stream, media_type=EVENTS, headers=STREAM_HEADERS)
        own = service.acting_as(request.state.caller)
        context = await _asked(own, body, request)
        answer = await own.write(context) if _is_written(own, body, context) else None
        return json_response(ask_document(context, answer))

    @router.get(
        "/api/sessions/{name}",
        summary="What was asked in a conversation, and what answered, oldest first",
        response_class=Response,
        responses={200: {"model": schemas.SessionDocument}},
    )
    async def session(name: schemas.Name, request: Request) -> Response:
        caller = request.state.caller
        turns = await service.acting_as(caller).look(lambda index: index.session(name, tenant=caller.tenant))
        return json_response(
            {"schema": "ctx.research.session/1", "session": name, "turns": [turn.to_dict() for turn in turns]}
        )

    @router.post(
        "/api/search",
        summary="Rank pages for a question, with snippets",
        response_class=Response,
        responses={200: {"model": schemas.SearchDocument}},
    )
    async def search(body: schemas.SearchBody, request: Request) -> Response:
        return json_response(search_document(await _searched(service.acting_as(request.state.caller), body)))

    @router.get(
        "/api/search",
        summary="The same for a question in the address",
        response_class=Response,
        responses={200: {"model": schemas.SearchDocument}},
    )
    async def search_by_address(
        *,
        request: Request,
        q: schemas.Question,
        num_results: schemas.Results | None = None,
        mode: Mode | None = None,
        doc: Annotated[list[schemas.Name] | None, Query(max_length=1000)] = None,
        not_doc: Annotated[list[schemas.Name] | None, Query(max_length=1000)] = None,
        under: Annotated[list[schemas.Name] | None, Query(max_length=1000)] = None,
        pages: schemas.PageRanges = "",
        since: schemas.Time = "",
        until: schemas.Time = "",
        tag: Annotated[list[schemas.Name] | None, Query(max_length=1000)] = None,
        min_score: schemas.Score | None = None,
        min_confidence: schemas.Level | None = None,
    ) -> Response:
        filters = schemas.FilterBody(
            documents=doc or [],
            not_documents=not_doc or [],
            under=under or [],
            pages=pages,
            since=since,
            until=until,
            tags=tag or [],
        )
        body = schemas.SearchBody(
            query=q,
            num_results=num_results,
            mode=mode,
            filters=filters,
            min_score=min_score,
            min_confidence=min_confidence,
        )
        return json_response(search_document(await _searched(service.acting_as(request.state.caller), body)))

    return router


def _common(body: schemas.SearchBody) -> dict[str, Any]:
    return {
        "num_results": body.num_results,
        "mode": body.mode.value if body.mode else None,
        "documents": None if body.documents is None else tuple(body.documents),
        "filters": body.filters.filters() if body.filters else None,
        "min_score": body.min_score,
        "min_confidence": body.min_confidence,
    }


async def _asked(service: Service, body: schemas.AskBody, request: Request) -> ResearchContext:
    """Memories and sessions are those of whoever asks, by their token."""
    return await service.ask(
        body.query,
        max_sources=body.max_sources,
        max_tokens=body.max_tokens,
        extent=body.extent,
        types=body.types,
        session=body.session,
        turn=body.turn or 0,
        tenant=request.state.caller.tenant,
        **_common(body),
    )


async def _searched(service: Service, body: schemas.SearchBody) -> Any:
    return await service.search(body.query, **_common(body))


def _is_written(service: Service, body: schemas.AskBody, context: ResearchContext) -> bool:
    """Where a model is asked for and none is configured, `Service.write` says what to set."""
    return body.write if body.write is not None else bool(service.model and context.sources)


def event(name: str, document: Any) -> bytes:
    """One server-sent event. JSON has no line breaks of its own, so it is one line of data."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), to_json(document))


async def _stream(service: Service, body: schemas.AskBody, request: Request) -> AsyncIterator[bytes]:
    """`context`, then `piece` for piece while a model writes, then `answer`; `problem` where it fails on the way."""
    try:
        context = await _asked(service, body, request)
        yield event("context", ask_document(context))
        answer = None
        if _is_written(service, body, context):
            writing = _Writing(service, context, request)
            async for piece in writing.pieces():
                yield piece
            answer = await writing.answer()
        yield event("answer", ask_document(context, answer))
    except CtxError as error:
        yield event("problem", problem_of(error).to_dict(request.state.request_id))


class _Writing:
    """An answer while a model writes it, in another thread. It ends when the reader has gone or the server stops."""

    def __init__(self, service: Service, context: ResearchContext, request: Request) -> None:
        self._service = service
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._left = False
        self._task = asyncio.create_task(service.write(context, self._on_piece))

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            while not self._task.done() or not self._queue.empty():
                next_piece = asyncio.create_task(self._queue.get())
                await asyncio.wait(
                    [next_piece, self._task], timeout=_ALIVE_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if next_piece.done():
                    yield event("piece", {"text": next_piece.result()})
                    continue
                next_piece.cancel()
                if not self._task.done():
                    yield b": still writing\n\n"
        finally:
            self._left = not self._task.done()  # whoever read has gone: the model need not go on

    async def answer(self) -> CheckedAnswer:
        return await self._task

    def _on_piece(self, piece: str) -> None:
        if self._left or self._service.stopping.is_set():
            raise KeyboardInterrupt  # ends the answer in good order, as at a terminal
        self._loop.call_soon_threadsafe(self._queue.put_nowait, piece)
