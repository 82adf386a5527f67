"""Context of several sources, packages, memories, turns and experiences over HTTP.

Whose things are meant is the token's to say; of memories the owner may name any tenant, and whoever else names one that
is not their own is refused. What finds nothing, or nothing that may be seen, is an empty answer with 200.

The endpoints of memories are called as seeds 000 and 001 call them, so that one ctx can be the memory of another.
Payloads are taken as they come from clients written against seed 000: fields that nobody knows are no fault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from research.conversation import LONGEST_NAME, LONGEST_TEXT, MAX_PROMPT_TOKENS, MOST_PROMPT_TOKENS, EmbeddedMemory
from research.errors import CtxError
from research.experiences import MOST_ITERATIONS, Experience
from research.governance import Principal
from research.memories import TOP_K
from research.models import Coverage
from research.packages import ContextBuildRequest, ContextPackage
from research.request import LONGEST_QUESTION, MOST_ITEMS, SOURCE_TYPES, AskRequest, Parameter
from research.schema import several, shape
from research.service import schemas
from research.service.mcp.tasks import EXPERIENCE
from research.service.problems import Problem, refused
from research.service.questions import body_of, request_body
from research.service.schemas import Own, Routes, answer, for_owner
from research.settings import MOST_TOKENS
from research.sources import ContextItem, FormattedContext

if TYPE_CHECKING:
    from research.governance import MemoryAccessAudit
    from research.index import Index
    from research.service.service import Service

_DOMAIN = Parameter("domain", "text", "Such as debugging, feature, testing.", most=100, required=True)
_PREMORTEM = body_of(
    _DOMAIN,
    Parameter("strategy", "text", "Such as systematic-elimination.", most=100),
    Parameter("limit", "integer", "Items of each source to look at.", default=10, least=1, most=MOST_ITEMS),
    Parameter("max_tokens", "integer", "The token budget.", default=1500, least=1, most=MOST_TOKENS),
)


ContextDocument = schemas.answer(
    "ContextDocument", FormattedContext, items=list[ContextItem], coverage=shape(Coverage, only="sources notes")
)


router = Routes(tags=["knowledge"])


@router.answer(
    "POST /api/context",
    "What memories, code, experiences, values, commits and documents say, as markdown within a budget",
    ContextDocument,
)
async def context(body: Annotated[AskRequest, request_body("POST context")], own: Own) -> Any:
    asked = replace(body, types=body.types or SOURCE_TYPES)
    found = answered(await own.asked(lambda index: index.context(asked)))
    return {"schema": "ctx.research.context/1", "query": asked.question, "types": asked.types, **found.to_dict()}


@router.answer("POST /api/premortem", "What went wrong before in a domain, and with a strategy", ContextDocument)
async def premortem(body: Annotated[dict[str, Any], _PREMORTEM], own: Own) -> Any:
    found = answered(await own.asked(lambda index: index.premortem(**body)))
    told = {"domain": body["domain"], "strategy": body.get("strategy")}
    return {"schema": "ctx.research.premortem/1", **told, **found.to_dict()}


def answered(found: FormattedContext) -> FormattedContext:
    """Raise if no source could be asked at all: that is a failure, not an empty answer."""
    if found.failed:
        names = ", ".join(each.name for each in found.coverage.sources)
        raise CtxError(f"no source could be asked: {names}", hint="see the server's log, or run: ctx doctor")
    return found


AuditDocument = answer("AuditDocument", entries=list[dict[str, Any]])


_PackageId = Annotated[str, Path(min_length=1, max_length=64, pattern="^[0-9a-f]+$")]


@router.answer(
    "POST /knowledge/context/build",
    "A context package for a task: ranked sources of every kind, governed, within a hard token budget",
    ContextPackage,
)
async def build(body: ContextBuildRequest, own: Own) -> Any:
    return _package(await own.asked(lambda index: index.packages.build(body)))


@router.answer(
    "GET /knowledge/context/{package_id}",
    "A package by its id, from the cache; where its time is over it is built anew from its request",
    ContextPackage,
)
async def package(package_id: _PackageId, own: Own) -> Any:
    return _package(await own.asked(lambda index: index.packages.get(package_id)))


def _package(package: ContextPackage) -> Response:
    return Response(package.model_dump_json(by_alias=True).encode(), media_type="application/json")


@router.answer(
    "GET /knowledge/audit",
    "Who was shown what, by which decision, the newest first; for the owner alone",
    AuditDocument,
    responses={403: {"description": "Only the owner may read the audit"}},
    dependencies=[for_owner("read the audit")],
)
async def audit(
    own: Own,
    *,
    principal: Annotated[str | None, Query(max_length=1000)] = None,
    tenant: Annotated[str | None, Query(max_length=1000)] = None,
    since: Annotated[str, Query(max_length=40)] = "",
    denied: bool = False,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Any:
    def read(index: Index) -> list[MemoryAccessAudit]:
        found = index.policy.audit()
        return found.entries(principal=principal, tenant=tenant, since=since, denied=denied, limit=limit)

    entries = [each.to_dict() for each in await own.look(read)]
    return {"schema": "ctx.research.audit/1", "entries": entries}


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
    replaces: Name | None = Field(
        default=None, description="The id of the memory that it says anew; that one is superseded."
    )


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


memories = Routes(tags=["memories"], responses={403: {"description": "The token is another tenant's"}})


@memories.answer("POST /context/evaluate", "The memories that may matter to a turn", CandidatesDocument)
async def evaluate(body: EvaluateBody, own: Own) -> Any:
    return await own.anyway(_memory("evaluate", body, own), question=True)


@memories.answer("POST /recall", "The memories that most likely answer a question", CandidatesDocument)
async def recall(body: EvaluateBody, own: Own) -> Any:
    return await own.anyway(_memory("evaluate", body, own), question=True)


@memories.answer("POST /memory/remember", "Remember something; durable when it is answered", RememberedDocument)
async def remember(body: RememberBody, own: Own) -> Any:
    return await own.anyway(_memory("tell", body, own), question=False)


@memories.answer("POST /memory/remember/batch", "Remember several things, in order", RememberedBatchDocument)
async def remember_batch(body: RememberBatchBody, own: Own) -> Any:
    return await own.anyway(_memory("tell_all", body, own), question=False)


def _memory(method: str, body: BaseModel, own: Service) -> Callable[[Index], Any]:
    """What an embedded memory service does with a payload, for whoever asks."""
    payload = with_tenant(body.model_dump(exclude_none=True), own.index.acting())
    return lambda index: getattr(EmbeddedMemory(index), method)(payload)


@memories.answer(
    "POST /context/turn", "The messages of a turn: history, memories and documents within a token budget", TurnDocument
)
async def turn(body: TurnBody, own: Own) -> Any:
    envelope = with_tenant(_storable(body.model_dump(exclude_none=True)), own.index.acting())
    limit, documents = envelope.pop("max_prompt_tokens"), envelope.pop("documents")
    work = partial(own.turn_maker.build_now, envelope, max_prompt_tokens=limit, documents=documents)
    return {"schema": "ctx.turn/1", **(await own.turns.run(work)).to_dict()}


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


_EXPERIENCE_BODY = body_of(
    *EXPERIENCE,
    Parameter("confidence_tier", "text", "gold, silver, bronze or abandoned; else by outcome and iterations.", most=20),
    Parameter("iteration_count", "integer", "How often it was tried.", least=1, most=MOST_ITERATIONS),
)
ExperienceDocument = answer("ExperienceDocument", Experience)


@router.answer(
    "POST /api/experiences",
    "Record what was tried, and what came of it; durable when it is answered",
    ExperienceDocument,
    responses={403: {"description": "Only the owner may tell experiences"}},
    dependencies=[for_owner("tell experiences")],
)
async def record(body: Annotated[dict[str, Any], _EXPERIENCE_BODY], own: Own) -> Any:
    def work(index: Index) -> dict[str, Any]:
        experience = index.experiences.record(**body)
        if not experience.is_open:
            index.experiences.renew_values()
        return experience.to_dict()

    return {"schema": "ctx.research.experience/1", **await own.anyway(work, question=False)}
