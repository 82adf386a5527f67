"""Random policies, labels and requests, and every place in which text of a source could stand after them."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from research.errors import CtxError
from research.governance.access import CLASSIFICATIONS, Principal
from research.index import Index
from research.observe.opentelemetry import OpenTelemetryRecorder
from research.observe.prometheus import PrometheusRecorder
from research.observe.recorder import Recorders
from research.settings import Settings
from research.store.catalog.catalog import Catalog
from research.store.catalog.labels import Label, put_labels

THINGS = 8
RULES = [
    "permit (principal, action, resource);",
    'permit (principal, action == Action::"read", resource) when { resource.level < 2 };',
    'permit (principal, action == Action::"read_redacted", resource) when { resource.level < 3 };',
    'permit (principal, action == Action::"read_text", resource) when { resource.status == "final" };',
    "forbid (principal, action, resource) when { resource.level == 3 };",
    'forbid (principal, action == Action::"read", resource) when { resource.level == 2 };',
    'permit (principal == User::"agent", action, resource) when { resource.status == "draft" };',
    "permit (principal, action, resource) when { resource.level * 9223372036854775807 >= 0 };",
    "permit (principal, action",
]


@dataclass(frozen=True)
class Case:
    policies: tuple[str, ...]
    levels: tuple[str, ...]
    statuses: tuple[str, ...]
    owner: bool
    request: dict[str, Any]


def cases() -> st.SearchStrategy[Case]:
    refs = st.lists(st.integers(0, THINGS).map(lambda n: f"memory:m{n}"), max_size=4)
    requests = st.fixed_dictionaries(
        {
            "intent": st.sampled_from(["why do uploads stop", "uploads of the queue", "something else"]),
            "tokenBudget": st.sampled_from([1, 40, 120, 400, 6000]),
            "pinned": refs,
            "retrieval": st.fixed_dictionaries(
                {
                    "sources": st.lists(st.sampled_from(["vector", "metadata", "graph"]), unique=True),
                    "filters": st.sampled_from([{}, {"status": "final"}, {"since": "2000"}]),
                }
            ),
        }
    )
    return st.builds(
        Case,
        st.lists(st.sampled_from(RULES), max_size=4, unique=True).map(tuple),
        st.lists(st.sampled_from(CLASSIFICATIONS), min_size=THINGS, max_size=THINGS).map(tuple),
        st.lists(st.sampled_from(["draft", "final"]), min_size=THINGS, max_size=THINGS).map(tuple),
        st.booleans(),
        requests,
    )


def word(number: int) -> str:
    return f"canary{number}x"


def mail(number: int) -> str:
    return f"person{number}x@example.com"


class Watched:
    """An index of memories with a word and an address each, and everything that could repeat them."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.policy = folder / "policies" / "policy.cedar"
        self.policy.parent.mkdir(mode=0o700)
        self.events = folder / "events.jsonl"
        self.spans, self.metrics = InMemorySpanExporter(), PrometheusRecorder()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self.spans))
        recorder = Recorders(OpenTelemetryRecorder(provider), self.metrics)
        self._write("// nothing is permitted")
        settings = Settings(policy=str(self.policy), events_file=str(self.events))
        with Index(root) as plain:
            for number in range(THINGS):
                # Two of them are found by a redactor, in all the others there is nothing to mask.
                more = f" Write to {mail(number)}." if number % 2 else ""
                plain.remember(f"Uploads stop, says {word(number)}.{more} The queue waits.", id=f"m{number}")
        self.index = Index.open(root, settings, recorder=recorder)

    def _write(self, policy: str) -> None:
        self.policy.write_text(policy)
        self.policy.chmod(0o600)

    def check(self, case: Case) -> None:
        """Build what a case asks for, and look for what it may not hold, everywhere."""
        given = [
            Label(f"memory:m{number}", name, value, given_at="2026-01-01T00:00:00+00:00")
            for number, values in enumerate(zip(case.levels, case.statuses, strict=True))
            for name, value in zip(("classification", "status"), values, strict=True)
        ]
        put_labels(self.index.catalog, given)
        self._write("\n".join(case.policies) or "// nothing is permitted")
        self._forget()
        index = self.index.acting_as(Principal("agent", owner=case.owner))
        said = io.StringIO()
        with _logged(said):
            try:
                package = index.build_package(case.request)
                out = package.model_dump_json() + index.package(package.context_package_id).model_dump_json()
                rulings = dict(self.index.audit().entry(package.policy_decision_id).refs)
            except CtxError as error:
                out, rulings = f"{error!r} {error.hint}", {}
        out += said.getvalue() + self._kept()
        for number in range(THINGS):
            effect = rulings.get(f"memory:m{number}", "deny")
            if effect == "deny":
                assert word(number) not in out, case
            if effect != "allow":
                assert mail(number) not in out, case

    def _forget(self) -> None:
        """What an earlier case was allowed to see."""
        with Catalog(self.index.paths, writable=True) as catalog, catalog.transaction() as connection:
            connection.execute("DELETE FROM package_requests")
        self.events.unlink(missing_ok=True)
        self.spans.clear()

    def _kept(self) -> str:
        """Cache, records, requests, projections, audit, events, spans and metrics."""
        found = [self.events.read_text() if self.events.exists() else "", self.metrics.render()[0].decode()]
        tables = ("package_requests", "packages", "package_cache", "package_sources", "projections", "audit")
        with self.index.catalog.snapshot() as reader:
            for table in tables:
                found += [repr(tuple(row)) for row in reader.connection.execute(f"SELECT * FROM {table}")]
        for span in self.spans.get_finished_spans():
            told = [(event.name, dict(event.attributes or {})) for event in span.events]
            found.append(repr((span.name, dict(span.attributes or {}), span.status.description, told)))
        return "\n".join(found)


@contextmanager
def _logged(stream: io.StringIO) -> Iterator[None]:
    """All that any logger says meanwhile."""
    handler, logger = logging.StreamHandler(stream), logging.getLogger()
    ours = logging.getLogger("ctx")
    before = (logger.level, ours.level)
    for each in (logger, ours):
        each.addHandler(handler)
        each.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        for each, level in zip((logger, ours), before, strict=True):
            each.removeHandler(handler)
            each.setLevel(level)
