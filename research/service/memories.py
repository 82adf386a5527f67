"""Memories and turns over HTTP: the endpoints of a memory service as seeds 000 and 001 call them, so that one ctx can
be the memory of another; and the messages of a turn, built here.

Whose memories are meant is the token's to say. The owner may name any tenant; whoever else names one that is not their
own is refused.

Payloads are taken as they come from clients written against seed 000: fields that nobody knows are no fault.

Experiences over HTTP: told in one request, or in two, before something is tried and after. For the owner alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from research.conversation import LONGEST_NAME, LONGEST_TEXT, MAX_PROMPT_TOKENS, MOST_PROMPT_TOKENS, EmbeddedMemory
from research.experiences import LONGEST_TEXT as LONGEST_EXPERIENCE
from research.experiences import MOST_ITERATIONS, Experience
from research.governance import Principal
from research.memories import TOP_K
from research.request import LONGEST_QUESTION
from research.schema import several
from research.service.answers import json_response
from research.service.problems import Problem, refused
from research.service.schemas import Body, answer

if TYPE_CHECKING:
    from research.index import Index
    from research.service.service import Service


_MOST_MEMORIES = 10_000  # of one request; its body is bounded before that
_MOST_TOP_K = 1000

Name = Annotated[str, Field(max_length=LONGEST_NAME)] | Annotated[int, Field(ge=0, lt=1 << 62)]
Tenant = Annotated[
    Name | None,
    Field(description="Whose it is: the token's own, if left out. Only the owner may name another."),
]


class Payload(BaseModel):
    model_config = ConfigDict(extra="allow")

    tenant_id: Tenant = None


class EvaluateBody(Payload):
    """A question for memories."""

    query: Annotated[str, Field(max_length=LONGEST_QUESTION, examples=["Where does Anna live?"])]
    top_k: Annotated[int, Field(ge=0, le=_MOST_TOP_K)] | None = TOP_K
    threshold: Annotated[float, Field(ge=0, le=1)] | None = Field(default=None, description="The least score.")
    session_id: Name | None = Field(default=None, description="Memories of this session come first among equals.")
    persona_id: Name | None = Field(default=None, description="Only this persona's memories, and nobody's.")
    namespace: Name | None = None


class MemoryBody(BaseModel):
    """A memory. What else is in it is kept as its metadata."""

    model_config = ConfigDict(extra="allow")

    text: Annotated[str, Field(max_length=LONGEST_TEXT, examples=["Anna moved to Bonn."])]
    type: Name | None = None
    session_id: Name | None = None
    persona_id: Name | None = None
    tags: Annotated[list[str], Field(max_length=32)] | None = None
    metadata: dict[str, Any] | None = None
    key: Name | None = Field(default=None, description="Telling it again under the same key tells nothing new.")


class RememberBody(MemoryBody):
    tenant_id: Tenant = None
    namespace: Name | None = None


class RememberBatchBody(Payload):
    memories: Annotated[list[MemoryBody], Field(max_length=_MOST_MEMORIES)]
    namespace: Name | None = None


class TurnBody(Payload):
    """A turn of a conversation, as seed 000 has it."""

    user_message: Any = ""
    system_prompt: Any = ""
    session_id: Name | None = None
    persona_id: Name | None = None
    history: list[Any] | None = Field(default=None, description="Messages with role and content, oldest first.")
    max_prompt_tokens: Annotated[int, Field(ge=1, le=MOST_PROMPT_TOKENS)] = MAX_PROMPT_TOKENS
    documents: bool = Field(default=False, description="Quote pages that may answer, beside memories.")


_ANYTHING = list[dict[str, Any]]

CandidatesDocument = answer(
    "CandidatesDocument",
    candidates=several(answer("Candidate", id=str, score=float, text=str, metadata=dict[str, Any])),
)
RememberedDocument = answer("RememberedDocument", ok=bool, id=str, outcome=Literal["stored", "joined", "known"])
RememberedBatchDocument = answer("RememberedBatchDocument", ok=bool, ids=list[str], outcomes=list[str])
TurnDocument = answer(
    "TurnDocument",
    messages=_ANYTHING,
    token_counts=dict[str, int],
    prompt_tokens=int,
    snippets=_ANYTHING,
    documents=_ANYTHING,
    debug=dict[str, Any],
)

_FORBIDDEN: dict[int | str, dict[str, Any]] = {403: {"description": "The token is another tenant's"}}


def memories_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["memories"], default_response_class=Response, responses=_FORBIDDEN)

    def memory_of(request: Request) -> EmbeddedMemory:
        return EmbeddedMemory(service.index.acting_as(request.state.caller))

    async def found(body: EvaluateBody, request: Request) -> Response:
        payload, memory = with_tenant(body.model_dump(exclude_none=True), request.state.caller), memory_of(request)
        return json_response(await service.turns.run(partial(memory.evaluate, payload)))

    @router.post(
        "/context/evaluate",
        summary="The memories that may matter to a turn",
        responses={200: {"model": CandidatesDocument}},
    )
    async def evaluate(body: EvaluateBody, request: Request) -> Response:
        return await found(body, request)

    @router.post(
        "/recall",
        summary="The memories that most likely answer a question",
        responses={200: {"model": CandidatesDocument}},
    )
    async def recall(body: EvaluateBody, request: Request) -> Response:
        return await found(body, request)

    @router.post(
        "/memory/remember",
        summary="Remember something; durable when it is answered",
        responses={200: {"model": RememberedDocument}},
    )
    async def remember(body: RememberBody, request: Request) -> Response:
        payload = with_tenant(body.model_dump(exclude_none=True), request.state.caller)
        return json_response(await service.looking.run(partial(memory_of(request).tell, payload)))

    @router.post(
        "/memory/remember/batch",
        summary="Remember several things, in order",
        responses={200: {"model": RememberedBatchDocument}},
    )
    async def remember_batch(body: RememberBatchBody, request: Request) -> Response:
        payload = with_tenant(body.model_dump(exclude_none=True), request.state.caller)
        return json_response(await service.looking.run(partial(memory_of(request).tell_all, payload)))

    @router.post(
        "/context/turn",
        summary="The messages of a turn: history, memories and documents within a token budget",
        responses={200: {"model": TurnDocument}},
    )
    async def turn(body: TurnBody, request: Request) -> Response:
        envelope = with_tenant(_storable(body.model_dump(exclude_none=True)), request.state.caller)
        limit, documents = envelope.pop("max_prompt_tokens"), envelope.pop("documents")
        own = service.acting_as(request.state.caller).turn_maker
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


_Text = Annotated[str, Field(max_length=LONGEST_EXPERIENCE)]
_Name = Annotated[str, Field(max_length=100)]


class ExperienceBody(Body):
    """A new experience, open or closed; or, by the id of one that is open, what changed, or its outcome."""

    id: Annotated[str, Field(pattern="^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$")] | None = None
    goal: _Text | None = Field(default=None, description="What is wanted.")
    hypothesis: _Text | None = Field(default=None, description="What is believed.")
    action: _Text | None = Field(default=None, description="What is done about it.")
    prediction: _Text | None = Field(default=None, description="What will happen if that is right.")
    domain: _Name | None = Field(default=None, examples=["debugging"])
    strategy: _Name | None = Field(default=None, examples=["root-cause-analysis"])
    outcome: Literal["confirmed", "falsified", "abandoned"] | None = Field(
        default=None, description="Without one it is open, and found by no question yet."
    )
    outcome_result: _Text | None = Field(default=None, description="What came of it. With an outcome it is needed.")
    surprise: _Text | None = None
    root_cause: _Text | None = None
    lesson: _Text | None = None
    confidence_tier: Literal["gold", "silver", "bronze", "abandoned"] | None = Field(
        default=None, description="By outcome and iterations, if nobody says."
    )
    iteration_count: Annotated[int, Field(ge=1, le=MOST_ITERATIONS)] | None = None


ExperienceDocument = answer("ExperienceDocument", Experience)


def experiences_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["experiences"], default_response_class=Response)

    @router.post(
        "/api/experiences",
        summary="Record what was tried, and what came of it; durable when it is answered",
        responses={
            200: {"model": ExperienceDocument},
            403: {"description": "Only the owner may tell experiences"},
        },
    )
    async def record(body: ExperienceBody, request: Request) -> Response:
        from research.service.app import problem_response

        if not request.state.caller.owner:
            hint = "use the owner's token; it lies in the file that ctx serve names at its start"
            problem = Problem(403, "Only the owner may tell experiences", hint=hint)
            return problem_response(problem, str(getattr(request.state, "request_id", "")))

        def work(index: Index) -> dict[str, Any]:
            experience = index.experiences.record(**body.model_dump(exclude_none=True))
            if not experience.is_open:
                index.experiences.renew_values()
            return experience.to_dict()

        told = await service.anyway(work, question=False)
        return json_response({"schema": "ctx.research.experience/1", **told})

    return router
