"""What requests about memories and turns hold, and what their answers look like: payloads as seed 000 has them in §16.

They are taken as they come from clients written against it: fields that nobody knows are no fault. Of a memory they
are kept with it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from research.conversation.intake import LONGEST_NAME, LONGEST_TEXT
from research.conversation.turns import MAX_PROMPT_TOKENS, MOST_PROMPT_TOKENS
from research.memories import TOP_K
from research.request import LONGEST_QUESTION
from research.schema import several
from research.service.schemas import answer

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
