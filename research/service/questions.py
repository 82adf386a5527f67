"""Questions over HTTP: `/api/research/ask` (seed 004), whole or as a stream of events, and `/api/search`.

An `AskRequest` as the body of an HTTP request, or as its query: read and described by its own records. Memories and
sessions are those of whom the index acts for.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Request
from pydantic import AfterValidator, GetCoreSchemaHandler
from starlette.responses import StreamingResponse

from research.errors import CtxError
from research.request import AskRequest, Parameter, input_schema, parameters_of, read_request, read_values
from research.service import schemas
from research.service.problems import problem_of
from research.service.schemas import Own, Routes, ask_document, search_document, to_json

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

    from research.models import ResearchContext
    from research.service.service import Service


@dataclass(frozen=True, slots=True)
class Takes:
    """Of an annotated body: what it may hold, and what it is read by. What is wrong is raised as UsageError."""

    parameters: tuple[Parameter, ...]
    read: Callable[[Mapping[str, Any]], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return handler.generate_schema(Annotated[dict[str, Any], AfterValidator(self.read)])

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        return input_schema(self.parameters)


def request_body(door: str) -> Takes:
    """An `AskRequest` that comes through this door."""
    return Takes(parameters_of(door), partial(read_request, door))


def body_of(*parameters: Parameter) -> Takes:
    """An object of these parameters, without those that were left out."""

    def read(given: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in read_values(parameters, given).items() if value is not None}

    return Takes(parameters, read)


def query_parameters(door: str) -> list[dict[str, Any]]:
    """What a query may hold, for the OpenAPI document."""
    return [
        {"name": each.name, "in": "query", "required": each.required, "schema": each.schema()}
        for each in parameters_of(door)
    ]


def read_query(door: str, query: QueryParams) -> AskRequest:
    """The request that a query is. Raises UsageError."""
    lists = {each.name for each in parameters_of(door) if each.kind == "texts"}
    return read_request(door, {name: query.getlist(name) if name in lists else query[name] for name in query})


EVENTS = "text/event-stream"
_ALIVE_SECONDS = 15.0  # a comment keeps proxies from closing a stream in which a model is still thinking

STREAM_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


router = Routes(tags=["questions"])


@router.answer(
    "POST /api/research/ask",
    "Quote what answers a question and cite its pages, within a token budget",
    responses={200: {"model": schemas.AskDocument, "content": {EVENTS: {"schema": {"type": "string"}}}}},
)
async def ask(body: Annotated[AskRequest, request_body("POST ask")], own: Own, request: Request) -> Any:
    if body.stream or EVENTS in request.headers.get("accept", ""):
        return StreamingResponse(_stream(own, body, request), media_type=EVENTS, headers=STREAM_HEADERS)
    context = await own.ask(body)
    return ask_document(context, await own.write(context) if _is_written(own, body, context) else None)


@router.answer(
    "GET /api/sessions/{name}",
    "What was asked in a conversation, and what answered, oldest first",
    schemas.SessionDocument,
)
async def session(name: schemas.Name, own: Own) -> Any:
    turns = await own.look(lambda index: index.sessions.get(name))
    return {"schema": "ctx.research.session/1", "session": name, "turns": [turn.to_dict() for turn in turns]}


@router.answer("POST /api/search", "Rank pages for a question, with snippets", schemas.SearchDocument)
async def search(body: Annotated[AskRequest, request_body("POST search")], own: Own) -> Any:
    return search_document(await own.search(body))


@router.answer(
    "GET /api/search",
    "The same for a question in the address",
    schemas.SearchDocument,
    openapi_extra={"parameters": query_parameters("GET search")},
)
async def search_by_address(own: Own, request: Request) -> Any:
    return search_document(await own.search(read_query("GET search", request.query_params)))


def _is_written(service: Service, request: AskRequest, context: ResearchContext) -> bool:
    """Where a model is asked for and none is configured, `Service.write` says what to set."""
    return request.write if request.write is not None else bool(service.model and context.sources)


def event(name: str, document: Any) -> bytes:
    """One server-sent event. JSON has no line breaks of its own, so it is one line of data."""
    return b"event: %s\ndata: %s\n\n" % (name.encode(), to_json(document))


async def _stream(service: Service, asked: AskRequest, request: Request) -> AsyncIterator[bytes]:
    """`context`, then `piece` for piece while a model writes, then `answer`; `problem` where it fails on the way."""
    try:
        context = await service.ask(asked)
        yield event("context", ask_document(context))
        answer = None
        if _is_written(service, asked, context):
            pieces: asyncio.Queue[str | None] = asyncio.Queue()
            left, loop = threading.Event(), asyncio.get_running_loop()

            def on_piece(piece: str) -> None:
                if left.is_set() or service.stopping.is_set():
                    raise KeyboardInterrupt  # ends the answer in good order, as at a terminal
                loop.call_soon_threadsafe(pieces.put_nowait, piece)

            writing = asyncio.create_task(service.write(context, on_piece))
            writing.add_done_callback(lambda _: pieces.put_nowait(None))
            try:
                async for piece in _until_none(pieces):
                    yield piece
            finally:
                left.set()  # whoever read has gone: the model need not go on
            answer = await writing
        yield event("answer", ask_document(context, answer))
    except CtxError as error:
        yield event("problem", problem_of(error).to_dict(request.state.request_id))


async def _until_none(pieces: asyncio.Queue[str | None]) -> AsyncIterator[bytes]:
    while True:
        try:
            async with asyncio.timeout(_ALIVE_SECONDS):
                piece = await pieces.get()
        except TimeoutError:
            yield b": still writing\n\n"
            continue
        if piece is None:
            return
        yield event("piece", {"text": piece})
