"""ContextBuilder: the messages of one turn of a conversation, with what is remembered, within a token budget.

    builder = ContextBuilder(
        somabrain=SomaBrainClient.get(), metrics=ContextBuilderMetrics(), token_counter=TokenCounter().count
    )
    context = await builder.build_for_turn(turn_envelope, max_prompt_tokens=4096)
    context.messages

The phases are those of seed 000: health, retrieval, salience, rank and clip, redaction, budget, summary of what was
trimmed, messages, metrics. Whatever the memory service does, the turn is built within the limits of its phases; what
went another way than usual stands in `debug`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, get_args

from research.conversation.health import (
    CircuitBreaker,
    DegradationMonitor,
    HealthProvider,
    OnDegraded,
    ServiceHealth,
    SomabrainHealthState,
)
from research.conversation.messages import (
    Budget,
    Fitted,
    MessageOverhead,
    Redaction,
    Snippet,
    Strategy,
    TokenCount,
    TurnReport,
)
from research.conversation.metrics import ContextBuilderMetrics
from research.conversation.salience import Candidates, apply_salience, rank
from research.conversation.service import GuardedService, MemoryService
from research.conversation.summaries import Summaries, Summarizer
from research.conversation.turn import LIMIT, BuiltContext, Turn
from research.conversation.turn import window as windowed
from research.errors import SomaClientError, UsageError
from research.governance import NoopRedactor, RedactorProtocol  # noqa: F401 - the seed looks for both here


class ContextBuilder:
    """For many turns at once, from many tasks and threads."""

    DEFAULT_TOP_K = 8
    DEGRADED_TOP_K = 3
    DEGRADED_WINDOW_SECONDS = 15

    def __init__(
        self,
        *,
        somabrain: MemoryService | Any,
        metrics: ContextBuilderMetrics,
        token_counter: TokenCount,
        redactor: RedactorProtocol | None = None,
        health_provider: HealthProvider | None = None,
        on_degraded: OnDegraded | None = None,
        monitor: DegradationMonitor | None = None,
        breaker: CircuitBreaker | None = None,
        degraded_window: float | None = None,
        threshold: float | None = None,
        retrieval_timeout: float = 2.0,
        redaction_timeout: float = 5.0,
        summary_timeout: float = 2.0,
        summarizer_timeout: float = 10.0,
        history_limit: int = LIMIT,
        budget: Strategy = "greedy",
        message_overhead: MessageOverhead | None = None,
        summarizer: Summarizer | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`somabrain` keeps the memories: a `MemoryService` with methods that block or do not; None: there are none.

        Without a `redactor` keys and tokens are taken out of memories and summaries. Without a `health_provider` the
        `monitor` knows how the service is; its failures open the `breaker`, its own if it has one. `threshold` is the
        least score that a memory must have. `message_overhead` is what a message costs beside its words, if not what
        chat models take. `summarizer` writes the summaries, in place of the messages' own words. `clock` measures time,
        `now` tells it.
        """
        if budget not in get_args(Strategy):
            raise UsageError(f"budget cannot be {budget!r}", hint=f"choose one of: {', '.join(get_args(Strategy))}")
        self.somabrain = somabrain
        self.metrics = metrics
        self.count_tokens = token_counter
        self.monitor = monitor or DegradationMonitor(clock=clock)
        window = float(self.DEGRADED_WINDOW_SECONDS if degraded_window is None else degraded_window)
        if breaker is None and not isinstance(getattr(somabrain, "breaker", None), CircuitBreaker):
            breaker = CircuitBreaker(trial=window, clock=clock)
        guarded = GuardedService(somabrain, breaker)
        self._memory = None if somabrain is None else guarded
        self.breaker = guarded.breaker
        self.health = ServiceHealth(
            guarded.breaker, self.monitor, window=window, provider=health_provider, on_degraded=on_degraded, clock=clock
        )
        self._threshold = threshold
        self.redaction = Redaction(redactor, redaction_timeout)
        self._summaries = Summaries(
            guarded,
            self.redaction,
            now,
            seconds=summary_timeout,
            summarizer=summarizer,
            summarizer_seconds=summarizer_timeout,
        )
        self._retrieval_timeout = retrieval_timeout
        self._history_limit = max(0, history_limit)
        self._budget = Budget(token_counter, message_overhead, budget)
        self._now = now

    async def build_for_turn(self, turn: Mapping[str, Any] | Turn, max_prompt_tokens: int = 4096) -> BuiltContext:
        """Raises UsageError for a turn or a budget that is none, TurnTooLongError where the turn's own words are more
        than the budget; nothing else, whatever the memory service does."""
        report = TurnReport(Turn.of(turn), self.health.state(), _limit(max_prompt_tokens))
        with self.metrics.time_total():
            snippets = await self._snippets(report)
            with report.phase("tokenisation", self.metrics.time_tokenisation()):
                window = windowed(report.turn.history, self._history_limit)
                fitted = self._budget.fit(report.turn, snippets, window, report.limit)
            await self._store_summary(fitted, report)
            with report.phase("prompt", self.metrics.time_prompt()):
                shown = [snippet.to_dict() for snippet in fitted.snippets]
                history = [entry.message for entry in fitted.history]
        self._record(fitted, report.limit)
        debug = report.to_debug(fitted, window)
        return BuiltContext(report.turn.system_prompt, fitted.messages, fitted.counts, debug, shown, history)

    async def warm_up(self) -> None:
        """Load what the first turn would wait for: the token tables, the redactor's models, the encoder and the index
        behind a memory on this machine. A remote service is not contacted."""
        self.count_tokens("warm up")
        await self.redaction.warm_up()
        if self._memory is not None:
            await self._memory.warm_up()

    async def _snippets(self, report: TurnReport) -> list[Snippet]:
        """Memories that may be shown, best first."""
        if self._memory is None:
            return []
        if report.state is SomabrainHealthState.DOWN:
            report.retrieval, report.reason = "skipped", "the memory service is down"
            return []
        limit = self.DEFAULT_TOP_K if report.state is SomabrainHealthState.NORMAL else self.DEGRADED_TOP_K
        with report.phase("retrieval", self.metrics.time_retrieval(report.state.value)):
            found = await self._retrieve(self._memory, limit, report)
        with report.phase("salience", self.metrics.time_salience()):
            scored = apply_salience(found.found, self._now())
        with report.phase("ranking", self.metrics.time_ranking()):
            # A service need not know of thresholds.
            near = [each for each in scored if each.candidate.score >= (self._threshold or 0.0)]
            report.dropped["below_threshold"] += len(scored) - len(near)
            ranked = rank(near, limit)
        with report.phase("redaction", self.metrics.time_redaction()):
            snippets, dropped = await self.redaction.snippets(ranked)
        report.dropped += dropped
        return snippets

    async def _retrieve(self, memory: GuardedService, top_k: int, report: TurnReport) -> Candidates:
        """The payload is that of seed 000, §16.1; with a persona and a threshold only where there are such."""
        turn = report.turn
        more = {"persona_id": turn.persona_id, "threshold": self._threshold}
        payload = {
            "tenant_id": turn.tenant_id,
            "session_id": turn.session_id,
            "query": turn.user_message,
            "top_k": top_k,
            **{name: value for name, value in more.items() if value is not None},
        }
        try:
            found = await memory.evaluate(payload, self._retrieval_timeout)
        except SomaClientError as error:
            report.retrieval, report.reason = ("skipped" if error.code == "open" else "failed"), error.message
            self._failed(error, report)
            return Candidates([])
        self.health.succeeded()
        report.retrieval, report.candidates = "ok", len(found.found)
        report.dropped += found.dropped
        self.metrics.snippet_count.observe(len(found.found))
        return found

    async def _store_summary(self, fitted: Fitted, report: TurnReport) -> None:
        """A service that is not well is spared: what was trimmed stays due."""
        history = report.turn.history
        first = fitted.history[0].place if fitted.history else len(history)
        if first == 0 or self._memory is None:
            return
        if report.retrieval != "ok":
            report.summary = "not yet"
            return
        try:
            if await self._summaries.store(history[:first], len(fitted.history), report):
                self.metrics.inc_snippets("summary", 1)
        except SomaClientError as error:
            self._failed(error, report)

    def _failed(self, error: SomaClientError, report: TurnReport) -> None:
        from research.observe import logger_of

        logger_of("conversation").warning("the memory service failed: %s", error.code)
        if error.counts:
            self.metrics.inc_degradation(error.code)
            self.health.failed(report.state)

    def _record(self, fitted: Fitted, limit: int) -> None:
        self.metrics.record_tokens(fitted.before, fitted.tokens, fitted.memories, fitted.tokens)
        self.metrics.token_utilization.observe(fitted.tokens / limit if limit else 0.0)
        self.metrics.inc_prompt()
        self.metrics.inc_snippets("final", len(fitted.snippets))


def _limit(max_prompt_tokens: object) -> int:
    try:
        limit = int(max_prompt_tokens)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        limit = -1
    if limit < 0:
        raise UsageError("max_prompt_tokens must be a number of tokens, 0 or more", hint="max_prompt_tokens=4096")
    return int(limit)
