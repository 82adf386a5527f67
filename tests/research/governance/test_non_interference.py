"""Non-interference: all that a principal is told is the same as on an index in which the denied things were never
ingested, through the library, the command and HTTP."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from research.errors import CtxError
from research.index import Index
from research.service import make_token
from research.settings import Settings
from research.sources import CONTEXT_TYPES
from research.store import IndexPaths
from tests.conftest import built_once
from tests.in_process import run_in_process
from tests.pace import draws
from tests.research.governance.two_indexes import (
    ANNA,
    NAME,
    OPEN_WORDS,
    OWNER,
    RULES,
    SECRET_WORDS,
    WHOLE,
    WITHOUT,
    Both,
    Rules,
    fill,
    plain,
    said,
)
from tests.served import Client, served_here

LABELS, ATTRIBUTES, TENANT = RULES


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folder = tmp_path_factory.mktemp("both")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CONFIG", "STATE", "CACHE"):
            patch.setenv(f"XDG_{name}_HOME", str(folder / name.lower()))
        yield Both(built_once(tmp_path_factory, NAME, fill), folder)


questions = st.lists(st.sampled_from(OPEN_WORDS + SECRET_WORDS), min_size=1, max_size=4, unique=True).map(" ".join)
TARGETED = "office quokkaprice of the acquisition"


def library(index: Index, question: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What the library gives, by every way that says something of the whole."""
    yield "ask", lambda: index.ask(question)
    yield "ask in words", lambda: index.ask(question, mode="lexical", max_tokens=300, highlights=True)
    yield "ask all", lambda: index.ask(question, types=CONTEXT_TYPES, max_tokens=6000, session="s")
    yield "session", lambda: [index.sessions.get("s"), index.sessions.list()]
    yield "ask named", lambda: index.ask(question, documents=["acquisition"])
    yield "search", lambda: index.search(question, num_results=20)
    yield "search by vectors", lambda: index.search(question, mode="dense", num_results=20)
    yield "rank", lambda: index.rank(question, everything=True)
    yield "context", lambda: index.context(question, CONTEXT_TYPES, max_tokens=6000)
    yield "premortem", lambda: index.premortem("debugging", "read-the-error")
    yield "recall", lambda: index.memories.recall(question)
    yield "memories", lambda: list(index.memories.list())
    yield "memory", lambda: index.memories.get("secret-1")
    yield "documents", lambda: [index.documents.list(), index.documents.all_tags(), index.documents.totals()]
    for name in ("acquisition.pdf", "minutes-2025", "minutes", "*secret*", "aquisition"):
        yield f"documents {name}", lambda name=name: index.documents.list(name)
        yield f"page {name}", lambda name=name: index.documents.page(name, 1, question=question)
    yield (
        "outline",
        lambda: [
            index.documents.outline("handbook.pdf"),
            index.documents.markdown(index.documents.list("handbook.pdf")[0].doc_id),
        ],
    )
    yield "graph", lambda: index.graph.show("handbook.pdf", hops=3)
    yield "graph of files", lambda: index.graph.show("experience:open-e1", hops=3)
    yield "code", lambda: index.search_code(question)
    yield "experiences", lambda: [index.experiences.list(), index.experiences.search(question, axis="root_cause")]
    yield "experience", lambda: index.experiences.get("secret-e1")
    yield "values", lambda: [index.experiences.values(), index.experiences.search_values(question)]
    yield "repositories", lambda: [index.documents.repositories(), index.documents.code_trees()]
    yield "package", lambda: index.packages.build({"intent": question, "tokenBudget": 3000})
    yield "pinned", lambda: index.packages.build({"intent": question, "pinned": ["memory:secret-1", "document:none"]})
    yield "status", index.admin.status


def told_by_library(root: Path, policy: Path, rules: Rules, question: str) -> dict[str, str]:
    told = {}
    with Index(root, Settings(policy=str(policy))) as opened:
        index = opened if rules.principal == OWNER else opened.acting_as(rules.principal)
        for name, way in library(index, question):
            try:
                told[name] = said(way())
            except CtxError as error:
                told[name] = f"{type(error).__name__}: {error.message}; {error.hint}"
    return told


def compare(whole: dict[str, str], without: dict[str, str]) -> None:
    assert whole.keys() == without.keys()
    for name, told in whole.items():
        if told != without[name]:
            lines = difflib.unified_diff(without[name].splitlines(), told.splitlines(), lineterm="", n=2)
            pytest.fail(f"{name} tells of what is denied:\n" + "\n".join(list(lines)[:60]))


def same_in_library(both: Both, rules: Rules, question: str) -> None:
    told = {}
    for name in (WHOLE, WITHOUT):
        with both.at(name, rules) as root:
            told[name] = told_by_library(root, both.policy, rules, question)
    compare(told[WHOLE], told[WITHOUT])


@pytest.mark.parametrize("rules", RULES, ids=lambda rules: rules.name)
def test_the_library_tells_nothing_of_what_is_denied(both: Both, rules: Rules) -> None:
    same_in_library(both, rules, TARGETED)


def test_without_a_policy_the_owner_is_told_of_all(both: Both) -> None:
    """Else the other tests prove nothing."""
    told = {}
    for name in (WHOLE, WITHOUT):
        with both.at(name, LABELS) as root, Index(root) as index:
            told[name] = {
                way: said(call()) for way, call in library(index, TARGETED) if way in ("ask", "search", "status")
            }
    assert all(told[WHOLE][way] != told[WITHOUT][way] for way in told[WHOLE])


@pytest.mark.slow
@draws(40, suppress_health_check=list(HealthCheck))
@given(rules=st.sampled_from(RULES), question=questions)
def test_whatever_is_asked_the_library_tells_nothing(both: Both, rules: Rules, question: str) -> None:
    same_in_library(both, rules, question)


COMMANDS = (
    ("ask", TARGETED),
    ("ask", TARGETED, "--types", "documents,memories,code,commits,experiences,values"),
    ("search", "office vorontsova"),
    ("context", TARGETED),
    ("recall", "quokkaprice budget"),
    ("list",),
    ("tag",),
    ("show", "acquisition.pdf"),
    ("outline", "minutes"),
    ("experience", "list"),
    ("graph", "handbook.pdf"),
    ("status",),
)


@pytest.mark.parametrize("rules", [LABELS, TENANT], ids=lambda rules: rules.name)
def test_the_command_tells_nothing_of_what_is_denied(both: Both, rules: Rules) -> None:
    told: dict[str, dict[str, str]] = {}
    acting = () if rules.principal == OWNER else ("--as", f"{ANNA.name}@{ANNA.tenant}")
    for name in (WHOLE, WITHOUT):
        with both.at(name, rules) as root:
            for command in COMMANDS:
                own = acting if command[0] not in ("status", "tag") else ()
                ran = run_in_process(
                    *command, "--json", "--index", str(root), *own, env={"CTX_POLICY": str(both.policy)}
                )
                shown = f"{ran.code}\n{said(json.loads(ran.out or 'null'))}\n{ran.err}"
                told.setdefault(name, {})[" ".join(command)] = shown
    compare(told[WHOLE], told[WITHOUT])


REQUESTS: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/api/status", None),
    ("GET", "/api/documents", None),
    ("GET", "/api/documents?q=acquisition", None),
    ("GET", "/api/tags", None),
    ("GET", "/api/search?q=office+quokkaprice&mode=lexical", None),
    ("GET", "/metrics", None),
    ("POST", "/api/research/ask", {"query": TARGETED}),
    ("POST", "/api/research/ask", {"query": TARGETED, "types": list(CONTEXT_TYPES)}),
    ("POST", "/api/research/ask", {"query": TARGETED, "documents": ["acquisition.pdf"]}),
    ("POST", "/api/context", {"query": TARGETED, "context_types": list(CONTEXT_TYPES)}),
    ("POST", "/recall", {"query": TARGETED}),
    ("POST", "/knowledge/context/build", {"intent": TARGETED, "tokenBudget": 2000}),
)


def test_a_server_tells_nothing_of_what_is_denied(both: Both, tmp_path: Path, loopback: None) -> None:
    told: dict[str, dict[str, str]] = {}
    for name in (WHOLE, WITHOUT):
        with both.at(name, TENANT) as root:
            token = make_token(IndexPaths(root), ANNA.name, ANNA.tenant)[0].reveal()
            with served_here(root, tmp_path / name, Settings(policy=str(both.policy))) as server:
                client = Client(server.port, token)
                for method, path, body in REQUESTS:
                    sent = None if body is None else json.dumps(body).encode()
                    answer = client.ask(method, path, sent, {"Content-Type": "application/json"} if sent else {})
                    document = plain(json.loads(answer.body))
                    if answer.status >= 400:
                        document.pop("instance", None)
                    told.setdefault(name, {})[f"{method} {path} {body}"] = f"{answer.status}\n{said(document)}"
                client.close()
    assert told[WHOLE]["GET /metrics None"].startswith("403")
    compare(told[WHOLE], told[WITHOUT])
