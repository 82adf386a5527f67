"""Every place that something may leak to, watched: what callers get, and what is written down along the way."""

from __future__ import annotations

import json
import logging
import re
import shutil
import sqlite3
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, given, settings
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from research.errors import CtxError
from research.governance.access import Principal
from research.index import Index
from research.observe import PrometheusRecorder, Recorders
from research.observe.exporters import OpenTelemetryRecorder
from research.packages.events import STREAM
from research.request import AskRequest
from research.settings import Settings
from research.sources import CONTEXT_TYPES
from research.store import Label
from tests.research.governance.canaries import Corpus, read_corpus
from tests.research.governance.leak_drawing import OWNER, Example, examples
from tests.research.governance.leak_oracle import Rules, forbidden
from tests.research.packages.redis_server import RedisServer

T = TypeVar("T")

_FILE_REFS = re.compile(r"file:/[^\s\"',\])]+")  # a ref is no text, and that of a file is its path


class _Kept(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


class Watched:
    """A copy of an index, opened in a few ways, of which everything that is said is kept."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.root = folder / "index"
        shutil.copytree(source, self.root)
        shutil.copy(source.with_name("secrets.json"), folder)
        self.corpus: Corpus = read_corpus(self.root)
        self._policy, self._events = folder / "policy.cedar", folder / "events" / "events.jsonl"
        self.write("// nothing")
        self._redis = RedisServer()
        self._redis.start()
        self._spans, self._metrics = InMemorySpanExporter(), PrometheusRecorder()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(self._spans))
        self._recorder = Recorders(OpenTelemetryRecorder(provider), self._metrics)
        self._log = _Kept()
        logger = logging.getLogger("ctx")
        self._level = logger.level
        logger.setLevel(logging.DEBUG)
        logger.addHandler(self._log)
        self._open: dict[tuple[bool, str], Index] = {}
        self._audited, self._told, self._stream = 0, 0, "-"
        self.examples = self.checks = self.seen = 0

    def close(self) -> None:
        for index in self._open.values():
            index.close()
        logger = logging.getLogger("ctx")
        logger.removeHandler(self._log)
        logger.setLevel(self._level)
        self._redis.close()

    def write(self, policy: str) -> None:
        self._policy.write_text(policy)
        self._policy.chmod(0o600)

    def index(self, rules: Rules) -> Index:
        """One for each default classification; half of them keep packages in Redis."""
        key = (rules.policy is not None, rules.default)
        if key not in self._open:
            settings = Settings(
                policy=str(self._policy) if key[0] else "",
                default_classification=rules.default,
                redis_url=self._redis.url if rules.default in ("Internal", "Restricted") else "",
                events_file=str(self._events),
            )
            self._open[key] = Index(self.root, settings, recorder=self._recorder)
        return self._open[key]

    def set(self, index: Index, rules: Rules) -> None:
        if rules.policy is not None:
            self.write(rules.policy)
        with index.catalog.short_write() as connection:
            connection.execute("DELETE FROM labels")
        given = [
            Label(each.target, name, value, each.tenant)
            for each in rules.labels
            for name, value in (("classification", each.classification), ("module", each.module))
            if value
        ]
        index.catalog.labels.put(given)

    def quiet(self, packages: list[str]) -> Iterator[tuple[str, str]]:
        """What is written down for others than whoever asked, since the last time: of anybody's text there is none."""
        yield "log", "\n".join(self._log.lines)
        self._log.lines.clear()
        yield "spans", "\n".join(span.to_json() for span in self._spans.get_finished_spans())
        self._spans.clear()
        yield "metrics", self._metrics.render()[0].decode()
        if self._events.exists():
            with self._events.open("rb") as events:
                events.seek(self._told)
                yield "events file", events.read().decode()
                self._told = events.tell()
        with self._redis.client() as client:
            for name, fields in client.xrange(STREAM, self._stream):
                self._stream = f"({name.decode()}"
                yield "events stream", repr(fields)
        with closing(sqlite3.connect(self.root / "catalog.sqlite3")) as catalog:
            for row in catalog.execute("SELECT * FROM audit WHERE seq > ?", (self._audited,)):
                self._audited = row[0]
                yield "audit", repr(row)
            for package in packages:
                for table in ("packages", "package_sources"):
                    for row in catalog.execute(f"SELECT * FROM {table} WHERE package_id = ?", (package,)):
                        yield table, repr(row)
            yield (
                "requests",
                repr(catalog.execute("SELECT * FROM package_requests ORDER BY asked_at DESC LIMIT 3").fetchall()),
            )
            yield (
                "projections",
                repr(catalog.execute("SELECT * FROM projections ORDER BY made_at DESC LIMIT 3").fetchall()),
            )

    def cached(self, package: str) -> Iterator[tuple[str, str]]:
        """What is kept of a package, for whoever it was built for."""
        with closing(sqlite3.connect(self.root / "catalog.sqlite3")) as catalog:
            for row in catalog.execute("SELECT * FROM package_cache WHERE package_id = ?", (package,)):
                yield "cache", repr(row)
        with self._redis.client() as client:
            for key in client.scan_iter(f"*{package}*"):
                yield "redis", client.get(key).decode()

    def expire(self, package: str) -> None:
        with closing(sqlite3.connect(self.root / "catalog.sqlite3", timeout=10)) as catalog, catalog:
            for table in ("packages", "package_cache"):
                catalog.execute(f"UPDATE {table} SET expires_at = '2020' WHERE package_id = ?", (package,))


def said(way: Callable[[], Any]) -> tuple[Any, str]:
    """What a way gives, and all of it in words; of an error everything that anybody prints of it."""
    try:
        given = way()
    except CtxError as error:
        told = [error.message, error.hint, repr(error), repr(vars(error)), *traceback.format_exception(error)]
        return None, "\n".join(map(str, told))
    return given, flat(given)


def flat(given: object) -> str:
    if hasattr(given, "model_dump_json"):
        return str(given.model_dump_json(by_alias=True))
    if isinstance(given, (list, tuple)):
        return "\n".join(map(flat, given))
    if is_dataclass(given) and not isinstance(given, type):
        return json.dumps(asdict(given), default=repr, ensure_ascii=False) + repr(given)
    return repr(given)


def every_way(index: Index, example: Example) -> list[tuple[str, Callable[[], Any]]]:
    """Every way out besides packages and sessions, by the name of its method."""
    intent, name, (one, two) = example.request["intent"], example.name, example.things
    key, asked = one.partition(":")[2].partition("#")[0], AskRequest(intent)
    documents, memories, experiences, graph = index.documents, index.memories, index.experiences, index.graph
    return [
        ("ask", lambda: index.ask(intent, max_tokens=3000, max_sources=20, highlights=True)),
        ("ask", lambda: index.ask(intent, max_tokens=6000, max_sources=30, types=list(CONTEXT_TYPES))),
        ("ask", lambda: index.ask(intent, documents=[name], extent="passages")),
        ("search", lambda: index.search(intent, num_results=10, highlights=True)),
        ("context", lambda: index.context(intent, list(CONTEXT_TYPES), max_tokens=6000)),
        ("graph.show", lambda: graph.show(one, hops=2)),
        ("graph.show", lambda: graph.show(name, two, hops=1)),
        ("graph.near", lambda: graph.near(one, two, hops=2)),
        ("memories.recall", lambda: memories.recall(intent, top_k=10)),
        ("memories.list", lambda: list(memories.list())),
        ("memories.get", lambda: memories.get(key)),
        ("documents.list", documents.list),
        ("documents.list", lambda: documents.list(name)),
        ("documents.get", lambda: documents.get(key)),
        ("documents.tags", lambda: documents.tags(name)),
        ("documents.all_tags", documents.all_tags),
        ("documents.repositories", documents.repositories),
        ("documents.code_trees", documents.code_trees),
        ("documents.page", lambda: documents.page(one, question=intent)),
        ("documents.page", lambda: documents.page(name, 2)),
        ("documents.pages", lambda: documents.pages(name)),
        ("documents.outline", lambda: documents.outline(key)),
        ("documents.outline", lambda: documents.outline(name)),
        ("documents.markdown", lambda: documents.markdown(key)),
        ("documents.file_of", lambda: documents.file_of(name)),
        ("documents.picture_path", lambda: documents.picture_path(name, 2)),
        ("rank", lambda: index.rank(intent, everything=True)),
        ("prompt", lambda: index.prompt(index.ask(intent, max_tokens=3000))),
        ("find", lambda: index.find(asked).within(4000, index.counter)),
        ("find_context", lambda: index.find_context(asked).within(4000, index.counter)),
        ("find_premortem", lambda: index.find_premortem("debugging").within(4000, index.counter)),
        ("experiences.list", experiences.list),
        ("experiences.get", lambda: experiences.get(key)),
        ("experiences.search", lambda: experiences.search(intent, axis="surprise")),
        ("experiences.values", experiences.values),
        ("experiences.search_values", lambda: experiences.search_values(intent)),
        ("experiences.value", lambda: experiences.value("val")),
        ("search_code", lambda: index.search_code(intent)),
        ("premortem", lambda: index.premortem("debugging", "read-the-error")),
    ]


class LeakError(AssertionError):
    pass


def look_at_many(watched: Watched, drawn: settings) -> None:
    @settings(drawn, suppress_health_check=list(HealthCheck))
    @given(examples(watched.corpus))
    def run(example: Example) -> None:
        Looking(watched, example).look()

    run()


class Looking:
    """One example, from the request to what is left of it; by some ways besides packages, or by all of them."""

    def __init__(self, watched: Watched, example: Example, *, every_way: bool = False) -> None:
        self._chosen = (lambda ways, _: ways) if every_way else chosen
        watched.examples += 1
        self._watched, self._example = watched, example
        self._index = watched.index(example.rules)
        self._view = acting(self._index, example.principal)
        self._other = acting(self._index, example.other)
        self._session = f"s{watched.examples}" if example.way % 7 == 0 else ""

    def look(self) -> None:
        """Raises `LeakError` with where, and what."""
        packages = self._first()
        self._again(packages)
        for where, text in self._watched.quiet(packages):
            self._check(where, text, self._watched.corpus.everything)

    def ask(self) -> None:
        """The same of a question alone, which is quick."""
        self._watched.set(self._index, self._example.rules)
        unseen = forbidden(self._watched.corpus, self._example.rules, self._example.principal)
        self._said("ask", lambda: self._view.ask(self._example.request["intent"], max_tokens=3000), unseen)

    def _first(self) -> list[str]:
        watched, example, view = self._watched, self._example, self._view
        watched.set(self._index, example.rules)
        unseen = forbidden(watched.corpus, example.rules, example.principal)
        package = self._said("package", lambda: view.packages.build(example.request), unseen)
        packages = [] if package is None else [package.context_package_id]
        for name in packages:
            self._cached(name, unseen)
        for name, way in self._chosen(every_way(view, example), example.way):
            self._said(name, way, unseen)
        if self._session:
            self._said("session", lambda: view.ask(example.request["intent"], session=self._session), unseen)
        return packages

    def _again(self, packages: list[str]) -> None:
        """Under what policy and labels are then, for the same and for another."""
        watched, example, view, other = self._watched, self._example, self._view, self._other
        watched.set(self._index, example.later)
        unseen = forbidden(watched.corpus, example.later, example.principal)
        theirs = forbidden(watched.corpus, example.later, example.other)
        for name in packages:
            if example.way % 3 == 1:
                watched.expire(name)
            again = view.packages.rebuild if example.way % 3 == 2 else view.packages.get
            self._said("package again", partial(again, name), unseen)
            self._cached(name, unseen)
            self._said("package of another", partial(other.packages.get, name), theirs)
            self._said("records", view.packages.list, watched.corpus.everything)
        if self._session:
            self._said("turns of all", view.sessions.list, unseen)
            self._said("turns", lambda: view.sessions.get(self._session), unseen)
            self._said("follow-up", lambda: view.ask("and what about herring?", session=self._session), unseen)
            self._said("turns of another", lambda: other.sessions.get(self._session), theirs)
        for name, way in self._chosen(every_way(other, example), example.way // 50):
            self._said(f"{name} by another", way, theirs)

    def _cached(self, package: str, unseen: frozenset[str]) -> None:
        for where, text in self._watched.cached(package):
            self._check(where, text, unseen)

    def _said(self, where: str, way: Callable[[], Any], unseen: frozenset[str]) -> Any:
        given, text = said(way)
        self._check(where, text, unseen)
        return given

    def _check(self, where: str, text: str, unseen: frozenset[str]) -> None:
        looked = _FILE_REFS.sub("", text)
        held = {each for each in self._watched.corpus.everything if each in looked}
        self._watched.checks += 1
        self._watched.seen += len(held - unseen)
        if found := sorted(held & unseen):
            at = looked.index(found[0])
            raise LeakError(f"{where}: {', '.join(found)} in …{looked[max(0, at - 200) : at + 200]}…")


def chosen(ways: Sequence[T], number: int) -> list[T]:
    """Three of them."""
    return [ways[(number + step * 11) % len(ways)] for step in range(3)]


def acting(index: Index, principal: Principal) -> Index:
    return index if principal == OWNER else index.acting_as(principal)
