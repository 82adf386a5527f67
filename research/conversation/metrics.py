"""The metrics of turns, by the names of seeds 000 (§17) and 001, for Prometheus.

    metrics = ContextBuilderMetrics()          # a registry of its own: two builders never clash
    with metrics.time_retrieval("normal"): …
    metrics.render()                           # what /metrics answers

Given the same registry twice, both count into the same metrics. Without the package `prometheus_client` (the extra
`serve`) everything can be called and nothing is counted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

_PHASE = (0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1.0)
_RETRIEVAL = (*_PHASE, 2.0)
_ASKED = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)
_SHARES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)

# name, what it says, labels, buckets
_HISTOGRAMS: tuple[tuple[str, str, tuple[str, ...], tuple[float, ...]], ...] = (
    ("thinking_total_seconds", "Overall context-building latency", (), (*_RETRIEVAL, 5.0)),
    ("thinking_retrieval_seconds", "Retrieval latency, by the state of the memory service", ("state",), _RETRIEVAL),
    ("thinking_salience_seconds", "Salience scoring latency", (), _PHASE),
    ("thinking_ranking_seconds", "Ranking and clipping latency", (), _PHASE),
    ("thinking_redaction_seconds", "Redaction latency", (), _PHASE),
    ("thinking_tokenisation_seconds", "Token counting and budgeting latency", (), _PHASE),
    ("thinking_prompt_seconds", "Prompt assembly latency", (), _PHASE),
    ("context_builder_retrieval_seconds", "Time to retrieve snippets from the memory service", (), _ASKED),
    ("context_builder_snippet_count", "Number of snippets retrieved", (), (0, 1, 3, 5, 8, 10, 15, 20)),
    ("context_builder_token_utilization", "Share of the token budget used", (), _SHARES),
)
_GAUGES = (
    ("context_tokens_before_budget", "Token count before applying the budget"),
    ("context_tokens_after_budget", "Token count after budget trimming"),
    ("context_tokens_after_redaction", "Token count of the memories after redaction"),
    ("context_prompt_tokens", "Final prompt token count"),
)
_COUNTERS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("context_builder_prompt_total", "Number of prompts built", ()),
    ("context_builder_snippets_total", "Snippets processed", ("stage",)),
    ("context_builder_degradation_total", "Degradation events triggered", ("reason",)),
)

_MADE = "ctx_turn_metrics"  # an attribute of a registry: the metrics that were made for it
_making = threading.Lock()


def _timer(name: str) -> Callable[[ContextBuilderMetrics], AbstractContextManager[None]]:
    return lambda self: self._time(name)


def _metric(name: str) -> property:
    return property(lambda self: self._of(name))


class ContextBuilderMetrics:
    """For many threads. `registry` is the one to count in; None: one of its own."""

    time_total = _timer("thinking_total_seconds")
    time_salience = _timer("thinking_salience_seconds")
    time_ranking = _timer("thinking_ranking_seconds")
    time_redaction = _timer("thinking_redaction_seconds")
    time_tokenisation = _timer("thinking_tokenisation_seconds")
    time_prompt = _timer("thinking_prompt_seconds")
    retrieval_duration = _metric("context_builder_retrieval_seconds")
    snippet_count = _metric("context_builder_snippet_count")
    token_utilization = _metric("context_builder_token_utilization")
    degradation_events = _metric("context_builder_degradation_total")

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry
        self._metrics: dict[str, Any] = {}
        if find_spec("prometheus_client") is None:
            return
        from prometheus_client import CollectorRegistry

        self.registry = CollectorRegistry() if registry is None else registry
        with _making:
            if not hasattr(self.registry, _MADE):
                setattr(self.registry, _MADE, _make(self.registry))
            self._metrics = getattr(self.registry, _MADE)

    def render(self) -> str:
        """All of the registry, in Prometheus' text format."""
        if self.registry is None or not self._metrics:
            return ""
        from prometheus_client import generate_latest

        return generate_latest(self.registry).decode()

    @contextmanager
    def time_retrieval(self, state: str) -> Iterator[None]:
        with (
            self._time("thinking_retrieval_seconds", state=str(state)),
            self._time("context_builder_retrieval_seconds"),
        ):
            yield

    def record_tokens(self, before_budget: int, after_budget: int, after_redaction: int, prompt_tokens: int) -> None:
        values = (before_budget, after_budget, after_redaction, prompt_tokens)
        for (name, _), value in zip(_GAUGES, values, strict=True):
            self._of(name).set(value)

    def inc_prompt(self) -> None:
        self._of("context_builder_prompt_total").inc()

    def inc_snippets(self, stage: str, count: int) -> None:
        """`stage`: "retrieved", "final" or "summary"."""
        self._of("context_builder_snippets_total", stage=stage).inc(max(0, count))

    def inc_degradation(self, reason: str) -> None:
        """`reason` is a code of SomaClientError."""
        self._of("context_builder_degradation_total", reason=reason).inc()

    def _of(self, name: str, **labels: str) -> Any:
        metric = self._metrics.get(name, _NOTHING)
        return metric.labels(**labels) if labels else metric

    @contextmanager
    def _time(self, name: str, **labels: str) -> Iterator[None]:
        begun = perf_counter()
        try:
            yield
        finally:
            self._of(name, **labels).observe(perf_counter() - begun)


class _Nothing:
    """In place of a metric where nobody counts."""

    def labels(self, *_: object, **__: object) -> _Nothing:
        return self

    def inc(self, *_: object) -> None: ...

    set = observe = inc


_NOTHING = _Nothing()


def _make(registry: CollectorRegistry) -> dict[str, Any]:
    from prometheus_client import Counter, Gauge, Histogram

    made: dict[str, Any] = {}
    for name, says, labels, buckets in _HISTOGRAMS:
        made[name] = Histogram(name, says, labels, buckets=buckets, registry=registry)
    for name, says in _GAUGES:
        made[name] = Gauge(name, says, registry=registry)
    for name, says, labels in _COUNTERS:
        made[name] = Counter(name, says, labels, registry=registry)
    return made
