"""The metrics of both seeds: names, labels, buckets, what a turn counts, and two builders side by side."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from research.conversation import ContextBuilderMetrics
from tests.research.conversation.making import Memories, build, builder, memory, talk, turn

_PHASES = "0.001 0.005 0.01 0.05 0.1 0.25 0.5 1.0"
BUCKETS = {
    "thinking_total_seconds": f"{_PHASES} 2.0 5.0",
    "thinking_retrieval_seconds": f"{_PHASES} 2.0",
    "thinking_salience_seconds": _PHASES,
    "thinking_ranking_seconds": _PHASES,
    "thinking_redaction_seconds": _PHASES,
    "thinking_tokenisation_seconds": _PHASES,
    "thinking_prompt_seconds": _PHASES,
    "context_builder_retrieval_seconds": "0.01 0.05 0.1 0.2 0.5 1.0",
    "context_builder_snippet_count": "0.0 1.0 3.0 5.0 8.0 10.0 15.0 20.0",
    "context_builder_token_utilization": "0.5 0.6 0.7 0.8 0.9 0.95 1.0",
}
GAUGES = [
    "context_tokens_before_budget",
    "context_tokens_after_budget",
    "context_tokens_after_redaction",
    "context_prompt_tokens",
]


def _value(metrics: ContextBuilderMetrics, sample: str, **labels: str) -> float | None:
    assert metrics.registry is not None
    return metrics.registry.get_sample_value(sample, labels)


@pytest.fixture
def used() -> ContextBuilderMetrics:
    metrics = ContextBuilderMetrics()
    service = Memories(memory("Ana lives in Kiel."), memory("Ana has a dog."))
    made = builder(service, metrics=metrics)
    build(made, turn(history=talk(25)))
    service.failing = True
    build(made, turn())
    return metrics


def test_every_histogram_has_its_buckets(used: ContextBuilderMetrics) -> None:
    found = {
        family.name: " ".join(dict.fromkeys(s.labels["le"] for s in family.samples if s.name.endswith("_bucket")))
        for family in text_string_to_metric_families(used.render())
        if family.type == "histogram"
    }
    assert found == {name: f"{buckets} +Inf" for name, buckets in BUCKETS.items()}


def test_a_turn_counts_what_it_did(used: ContextBuilderMetrics) -> None:
    assert _value(used, "context_builder_prompt_total") == 2
    assert _value(used, "context_builder_snippets_total", stage="final") == 2
    assert _value(used, "context_builder_snippets_total", stage="summary") == 1
    assert _value(used, "context_builder_degradation_total", reason="busy") == 1
    assert _value(used, "thinking_total_seconds_count") == 2
    assert _value(used, "thinking_retrieval_seconds_count", state="normal") == 2
    assert _value(used, "context_builder_retrieval_seconds_count") == 2
    assert _value(used, "context_builder_snippet_count_sum") == 2
    assert _value(used, "context_builder_token_utilization_count") == 2
    for phase in ("salience", "ranking", "redaction", "tokenisation", "prompt"):
        assert (_value(used, f"thinking_{phase}_seconds_count") or 0) >= 1
    for gauge in GAUGES:
        assert _value(used, gauge) is not None


def test_tokens_before_and_after_the_budget() -> None:
    metrics = ContextBuilderMetrics()
    memories = Memories(*(memory(f"{number} " + "word " * 20) for number in range(3)))
    context = build(
        builder(memories, metrics=metrics, message_overhead=0), turn("hello", talk(10), system_prompt=""), 50
    )
    before, after, redacted, prompt = (_value(metrics, gauge) for gauge in GAUGES)
    assert after == prompt == context.prompt_tokens <= 50
    assert redacted == 2 + 3 * 23
    assert before == 1 + 71 + 20


def test_the_methods_of_the_seeds_class() -> None:
    """§14, called as they are drawn there."""
    metrics = ContextBuilderMetrics()
    timers: list[Callable[[], AbstractContextManager[None]]] = [
        metrics.time_total,
        lambda: metrics.time_retrieval("degraded"),
        metrics.time_salience,
        metrics.time_ranking,
        metrics.time_redaction,
        metrics.time_tokenisation,
        metrics.time_prompt,
    ]
    for timer in timers:
        with timer():
            pass
        with pytest.raises(KeyError), timer():
            raise KeyError
    metrics.record_tokens(before_budget=5, after_budget=4, after_redaction=3, prompt_tokens=2)
    metrics.record_tokens(50, 40, 30, 20)
    metrics.inc_prompt()
    metrics.inc_snippets(stage="final", count=3)
    metrics.inc_snippets(stage="final", count=-1)
    metrics.retrieval_duration.observe(0.1)
    metrics.snippet_count.observe(8)
    metrics.token_utilization.observe(0.7)
    metrics.degradation_events.labels(reason="timeout").inc()
    assert [_value(metrics, gauge) for gauge in GAUGES] == [50, 40, 30, 20]
    assert _value(metrics, "context_builder_snippets_total", stage="final") == 3
    assert _value(metrics, "thinking_retrieval_seconds_count", state="degraded") == 2


def test_two_builders_in_one_process_never_clash() -> None:
    one, other = ContextBuilderMetrics(), ContextBuilderMetrics()
    one.inc_prompt()
    assert _value(one, "context_builder_prompt_total") == 1
    assert _value(other, "context_builder_prompt_total") == 0
    assert "context_builder_prompt" not in [metric.name for metric in REGISTRY.collect()]
    same = ContextBuilderMetrics(one.registry)
    same.inc_prompt()
    assert _value(one, "context_builder_prompt_total") == 2, "with one registry they count together"
    assert len(re.findall("^# TYPE context_builder_prompt_total ", one.render(), re.MULTILINE)) == 1


def test_without_the_package_everything_can_be_called_and_nothing_is_counted() -> None:
    code = """
import asyncio, sys, importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name == "prometheus_client" else real(name, *a)
sys.modules["prometheus_client"] = None
from tests.research.conversation.making import Memories, build, builder, memory, turn
made = builder(Memories(memory("Ana lives in Kiel.")))
assert build(made, turn()).debug["snippet_count"] == 1
made.metrics.degradation_events.labels(reason="x").inc()
assert made.metrics.render() == ""
"""
    subprocess.run([sys.executable, "-c", code], check=True)
