"""What may not be read leaves a server by no route and no tool, and reaches no model elsewhere."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from research.governance.labels import Labels
from research.index import Index
from research.service import make_token
from research.settings import Settings
from research.sources import CONTEXT_TYPES
from research.store import IndexPaths
from tests.loopback import Call, Serving
from tests.research.governance.governed_index import policy_of
from tests.research.sources.everything import EXPERIENCES
from tests.served import Answer, Client, Served, served_here

ASKED = "why do uploads stop and how often is a part sent again"
HERS = "Eva's secret upload key is under the mat."
SECOND = "The server closes connections that are idle for a minute."


@pytest.fixture
def root(of_everything: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return Path(shutil.copytree(of_everything, tmp_path / "index"))


def shingles(root: Path) -> set[str]:
    """Every three words that stand together in something that is stored, and the names of things."""
    with Index(root) as index, index.catalog.snapshot() as reader:
        texts = [str(row[0]) for row in reader.connection.execute("SELECT text FROM items")]
        texts += [str(row[0]) for row in reader.connection.execute("SELECT text FROM memories")]
        texts += [index.documents.markdown(info.doc_id) or "" for info in index.documents.list()]
    texts += [text for told in EXPERIENCES for text in told.values()]
    found = set()
    for text in texts:
        words = re.findall(r"\w+", text)
        found |= {" ".join(three) for three in zip(words, words[1:], words[2:], strict=False)}
    return found - {" ".join(three) for three in zip(*(ASKED.split()[n:] for n in range(3)), strict=False)}


def leaks(root: Path, said: str) -> list[str]:
    words = " ".join(re.findall(r"\w+", said))
    return sorted(three for three in shingles(root) if f" {three} " in f" {words} ")


def shingles_of(text: str) -> set[str]:
    words = re.findall(r"\w+", text)
    return {" ".join(three) for three in zip(words, words[1:], words[2:], strict=False)}


def requests(doc_id: str) -> Iterator[tuple[str, str, Any]]:
    for path in (
        "",
        "/outline",
        "/pages/1",
        "/pages/2?question=uploads",
        "/pages/1/image",
        "/pages/1/thumbnail",
        "/file",
    ):
        yield "GET", f"/api/documents/{doc_id}{path}", None
    for path in ("/api/documents", "/api/tags", "/api/search?q=uploads", "/ask?q=uploads", "/api/status", "/"):
        yield "GET", path, None
    yield "POST", "/api/research/ask", {"query": ASKED}
    yield "POST", "/api/research/ask", {"query": ASKED, "stream": True}
    yield "POST", "/api/research/ask", {"query": ASKED, "types": list(CONTEXT_TYPES)}
    yield "POST", "/api/research/ask", {"query": ASKED, "documents": ["manaul.pdf"]}
    yield "GET", "/api/sessions/s", None
    yield "POST", "/api/research/ask", {"query": ASKED, "session": "s"}
    yield "GET", "/api/sessions/s?again", None
    yield "POST", "/api/search", {"query": ASKED}
    yield "POST", "/api/context", {"query": ASKED, "context_types": list(CONTEXT_TYPES)}
    yield "POST", "/api/premortem", {"domain": "debugging"}
    yield "POST", "/recall", {"query": ASKED}
    yield "POST", "/context/evaluate", {"query": ASKED}
    yield "POST", "/context/turn", {"user_message": ASKED, "documents": True}
    yield "POST", "/knowledge/context/build", {"intent": ASKED, "tokenBudget": 2000}
    tools = {
        "ask": {"question": ASKED, "types": list(CONTEXT_TYPES)},
        "search": {"question": ASKED},
        "get_page": {"document": doc_id, "pages": "1"},
        "page_image": {"document": doc_id, "page": 1},
        "list_documents": {},
        "outline": {"document": doc_id},
        "search_code": {"question": ASKED},
        "assemble_context": {"query": ASKED, "types": list(CONTEXT_TYPES)},
        "premortem": {"domain": "debugging"},
        "recall": {"question": ASKED},
        "build_turn": {"user_message": ASKED, "documents": True},
        "build_context_package": {"intent": ASKED},
    }
    for number, (name, values) in enumerate(tools.items()):
        call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": values}}
        yield "POST", "/mcp", call


def answers(server: Served, token: str, doc_id: str) -> list[tuple[str, Answer]]:
    client = Client(server.port, token)
    got = []
    for method, path, body in requests(doc_id):
        accept = "application/json, text/event-stream" if path == "/mcp" else "application/json, text/html"
        headers = {"Accept": accept} | ({} if body is None else {"Content-Type": "application/json"})
        sent = None if body is None else json.dumps(body).encode()
        got.append((f"{method} {path} {body}", client.ask(method, path, sent, headers)))
    client.close()
    return got


def test_with_another_token_nothing_comes_out_but_ones_own(root: Path, tmp_path: Path, loopback: None) -> None:
    eva, hers = make_token(IndexPaths(root), "eva", "eva")[0].reveal(), shingles_of(HERS)
    with Index(root) as index:
        [info] = index.documents.list()
    with served_here(root, tmp_path) as server:
        own = answers(server, server.token, info.doc_id)
        seen = answers(server, eva, info.doc_id)
    assert len([what for what, answer in own if leaks(root, answer.body.decode("latin-1"))]) >= 18, "the owner sees it"
    assert dict(seen)["GET /api/sessions/s None"].status == 404, "the owner's session is not hers"
    assert b"turns" in dict(seen)["GET /api/sessions/s?again None"].body
    for what, answer in seen:
        assert answer.status < 500, (what, answer.body)
        assert [three for three in leaks(root, answer.body.decode("latin-1")) if three not in hers] == [], what
        assert not answer.headers.get("content-type", "").startswith(("image/", "application/pdf")), what
    with Index(root) as index:
        audited = [entry for entry in index.policy.audit().entries(limit=1000) if entry.principal == "eva"]
    assert {"ask", "search", "context", "recall", "package"} <= {entry.purpose for entry in audited}


def test_a_model_elsewhere_is_sent_what_the_policy_permits(root: Path, tmp_path: Path, serving: Serving) -> None:
    heard: list[str] = []

    def respond(call: Call) -> None:
        heard.append(json.dumps(call.body))
        call.reply("Parts are sent again [1].")

    policy = """
        permit (principal, action, resource);
        forbid (principal, action == Action::"send", resource) when { resource.classification == "Confidential" };
    """
    settings = Settings(model="tiny", model_url=serving(respond).url, policy=policy_of(tmp_path, policy))
    with Index(root, settings) as index:
        [info] = index.documents.list()
        Labels(lambda: index.catalog).put(f"page:{info.doc_id}#2", {"classification": "Confidential"})
        context = index.ask("When does the server close idle connections, and how often is a part sent again?")
        assert SECOND in context.formatted_text
        prompt = index.prompt(context)
        assert not any(SECOND in message.text for message in prompt.messages)
        answer = index.answer(context)
    assert answer.written.text
    assert any("three times at most" in body for body in heard)
    assert not any("idle for a minute" in body for body in heard)
    assert not any("connections that" in body for body in heard)
