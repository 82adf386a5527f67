"""Turns for whoever asks from outside: `ctx turn`, `POST /context/turn` and the tool `build_turn` alike.

    maker = TurnMaker(index)
    built = await maker.build({"user_message": "And in 2024?", "history": […]}, documents=True)
    built.to_dict()["messages"]

Memories are those of the index, or of the service that SA01_SOMA_BASE_URL names. Whose they are is the caller's to say:
`tenant_id` of the envelope is believed, so whoever stands behind a door puts it there. With documents, pages that may
answer stand in a message of their own beside the memories, quoted and cited; half of the room that system prompt and
message leave is for them at most.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from research.context import DOCUMENTS_HEADING, message
from research.conversation.builder import ContextBuilder
from research.conversation.client import BASE_URL, SomaBrainClient, SomaSettings
from research.conversation.messages import Budget, system_message, user_message
from research.conversation.metrics import ContextBuilderMetrics
from research.conversation.service import EmbeddedMemory
from research.conversation.turn import BuiltContext, Turn, spoken
from research.errors import CtxError
from research.request import AskRequest
from research.settings import FLOOR

if TYPE_CHECKING:
    from research.context import TokenCounter
    from research.governance import Principal, RedactorProtocol
    from research.index import Index
    from research.models import SourceDocument

MAX_PROMPT_TOKENS = 4096
MOST_PROMPT_TOKENS = 1_000_000
_LEAST_TOKENS = 100  # for documents: less says nothing
_SHRINKING = (1.0, 0.8, 0.6)  # of the room: what is made safe may grow
_BEFORE = 3  # questions that a follow-up may lean on
_REDACTION_SECONDS = 10.0
_MOST_VIEWS = 64  # principals whose turns are built at once, about


@dataclass(frozen=True, slots=True)
class BuiltTurn:
    """The context of a turn, and the pages that are quoted in it."""

    context: BuiltContext
    documents: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**self.context.to_dict(), "documents": self.documents}


@dataclass(frozen=True, slots=True)
class _Block:
    """Documents as a message, and what it costs; without one, why there is none."""

    status: str  # "ok", "nothing found", "no room", "not redacted", "failed", or that it timed out
    message: dict[str, Any] | None = None
    tokens: int = 0
    overhead: int = 0
    documents: list[dict[str, Any]] = field(default_factory=list)


class TurnMaker:
    """For many turns at once, from many tasks."""

    def __init__(
        self,
        index: Index,
        *,
        metrics: ContextBuilderMetrics | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment` has the SA01_* variables."""
        self.metrics = metrics or ContextBuilderMetrics()
        self._index = index
        self._environment = os.environ if environment is None else environment
        self._opening = threading.Lock()
        self._builder: ContextBuilder | None = None
        self._memory_service: Any = None
        self._counter: TokenCounter | None = None
        self._views: dict[Principal, TurnMaker] = {}

    def acting_as(self, principal: Principal) -> TurnMaker:
        """The same for what this principal may see of the index; what it measures is counted here."""
        if principal.owner:
            return self
        with self._opening:
            if len(self._views) >= _MOST_VIEWS:
                self._views.clear()
            if principal not in self._views:
                index = self._index.acting_as(principal)
                self._views[principal] = TurnMaker(index, metrics=self.metrics, environment=self._environment)
            return self._views[principal]

    async def build(
        self,
        envelope: Mapping[str, Any] | Turn,
        *,
        max_prompt_tokens: int = MAX_PROMPT_TOKENS,
        documents: bool = False,
    ) -> BuiltTurn:
        """Raises as `ContextBuilder.build_for_turn` does; what goes wrong with documents is told in `debug`."""
        turn, builder = Turn.of(envelope), await self._index.workers.run(self._opened, name="turns")
        if not documents:
            return BuiltTurn(await builder.build_for_turn(turn, max_prompt_tokens))
        asked = self._index.workers.start(partial(self._documents, turn, max_prompt_tokens), "documents")
        outcome = await asked.outcome(self._index.settings.source_seconds)
        block = _Block(str(outcome.error)) if outcome.late else outcome.result()
        built = await builder.build_for_turn(turn, max_prompt_tokens - block.tokens - block.overhead)
        return BuiltTurn(_joined(built, block, max_prompt_tokens), block.documents)

    def build_now(
        self,
        envelope: Mapping[str, Any] | Turn,
        *,
        max_prompt_tokens: int = MAX_PROMPT_TOKENS,
        documents: bool = False,
    ) -> BuiltTurn:
        """The same for a thread that has nothing else to do, in an event loop of its own."""

        async def build() -> BuiltTurn:
            try:
                return await self.build(envelope, max_prompt_tokens=max_prompt_tokens, documents=documents)
            finally:
                close = getattr(self._memory_service, "aclose", None)
                if close is not None:  # connections belong to their loop
                    await close()

        return asyncio.run(build())

    def _opened(self) -> ContextBuilder:
        with self._opening:
            if self._builder is None:
                from research.context import TokenCounter

                embedded = not self._environment.get(BASE_URL, "").strip()
                self._memory_service = (
                    EmbeddedMemory(self._index)
                    if embedded
                    else SomaBrainClient(settings=SomaSettings.from_environment(self._environment))
                )
                self._counter = TokenCounter(self._index.settings.token_encoding)
                self._builder = ContextBuilder(
                    somabrain=self._memory_service,
                    metrics=self.metrics,
                    token_counter=self._counter.count,
                    redactor=self._redactor(),
                    redaction_timeout=_REDACTION_SECONDS,
                    retrieval_timeout=self._index.settings.source_seconds,
                    threshold=FLOOR if embedded else None,  # only our own scores mean what ours do
                )
            return self._builder

    def _redactor(self) -> RedactorProtocol | None:
        """Return what the settings name; None is the builder's own, for keys and tokens."""
        from research.governance import redactor_of

        settings = self._index.settings
        if settings.redact == "secrets" and not settings.secrets and not settings.redact_allow:
            return None
        whole = self._index.unrestricted()
        with whole.catalog.snapshot() if whole.exists else nullcontext() as reader:
            return redactor_of(settings, environment=self._environment, reader=reader)

    def _documents(self, turn: Turn, limit: int) -> _Block:
        assert self._counter is not None
        count, overhead = self._counter.count, Budget(self._counter.count).overhead
        own = [system_message(turn.system_prompt), user_message(turn.user_message)]
        room = (limit - sum(overhead(each) + count(each["content"]) for each in own)) // 2
        if not turn.user_message.strip() or room < _LEAST_TOKENS:
            return _Block("no room")
        try:
            found = self._index.find(AskRequest(turn.user_message, before=_asked_before(turn)))
        except CtxError as error:
            from research.observe import log_failure

            log_failure("conversation", "asking documents for a turn", error)
            return _Block("failed")
        for share in _SHRINKING:
            context = found.within(int(room * share), self._index.counter)
            if not context.sources or (context.confidence is not None and context.confidence.level == "none"):
                return _Block("nothing found")
            shown = self._safe_sources(context.sources)
            if not shown:
                return _Block("not redacted")
            text = "\n\n".join([DOCUMENTS_HEADING, *(_quoted(number, source, safe) for number, source, safe in shown)])
            message = {"role": "system", "name": "documents", "content": text}
            if count(text) + overhead(message) <= room:
                cited = [_cited(number, source) for number, source, _ in shown]
                return _Block("ok", message, count(text), overhead(message), cited)
        return _Block("no room")

    def _safe_sources(self, sources: Sequence[SourceDocument]) -> list[tuple[int, SourceDocument, str]]:
        """Those that could be redacted, with their numbers."""
        assert self._builder is not None
        done = self._builder.redaction.safe().redact_all([source.markdown_content for source in sources])
        numbered = zip(range(1, len(sources) + 1), sources, done.texts, strict=True)
        return [(number, source, text) for number, source, text in numbered if text is not None]


def _joined(built: BuiltContext, block: _Block, limit: int) -> BuiltContext:
    """With the documents before the user's message, where memories stand."""
    debug = {**built.debug, "max_prompt_tokens": limit, "documents": block.status}
    if block.message is None:
        return replace(built, debug=debug)
    *before, user = built.messages
    counts = dict(built.token_counts)
    counts["documents"] = block.tokens
    counts["overhead"] += block.overhead
    debug["context_prompt_tokens"] = sum(counts.values())
    return replace(built, messages=[*before, block.message, user], token_counts=counts, debug=debug)


def _asked_before(turn: Turn) -> list[str]:
    """The last questions of the history, oldest first."""
    said = (spoken(entry) for entry in turn.history[-20:])
    return [each[1] for each in said if each is not None and each[0] == "user"][-_BEFORE:]


def _quoted(number: int, source: SourceDocument, text: str) -> str:
    from research.context import CitedPages, item_of

    mark = f" (suspicious: {' '.join(source.suspicious)})" if source.suspicious else ""
    return f"{CitedPages().header(item_of(source), number)}{mark}\n{message(text)}"


def _cited(number: int, source: SourceDocument) -> dict[str, Any]:
    return {
        "citation": number,
        "ref": source.ref,
        "filename": source.filename,
        "page": source.page,
        "relevance_score": source.relevance_score,
    }
