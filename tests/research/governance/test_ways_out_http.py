"""What may not be read leaves a server by no route and no tool, and reaches no model elsewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from research.governance.access import Principal
from research.governance.labels import Labels
from research.index import Index
from research.service import make_token
from research.settings import Settings
from research.sources import CONTEXT_TYPES
from research.store import IndexPaths
from tests.conftest import built_once
from tests.loopback import Call, Serving
from tests.research.governance.canaries import CANARY, NAME, TENANT, fill, read_corpus
from tests.research.governance.governed_index import policy_of
from tests.research.governance.leak_drawing import INTENTS
from tests.research.governance.leak_oracle import Rules, forbidden
from tests.served import Answer, Client, Served, served_here

ASKED = INTENTS[1]
EVA = Principal(TENANT, TENANT)


@pytest.fixture
def root(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    source = built_once(tmp_path_factory, NAME, fill)
    shutil.copy(source.with_name("secrets.json"), tmp_path)
    return Path(shutil.copytree(source, tmp_path / "index"))


def requests(doc_id: str) -> Iterator[tuple[str, str, Any]]:
    for path in (
        "",
        "/outline",
        "/pages/1",
        "/pages/2?question=walrus",
        "/pages/1/image",
        "/pages/1/thumbnail",
        "/file",
    ):
        yield "GET", f"/api/documents/{doc_id}{path}", None
    for path in ("/api/documents", "/api/tags", "/api/search?q=walrus", "/ask?q=walrus", "/api/status", "/"):
        yield "GET", path, None
    yield "POST", "/api/research/ask", {"query": ASKED}
    yield "POST", "/api/research/ask", {"query": ASKED, "stream": True}
    yield "POST", "/api/research/ask", {"query": ASKED, "types": list(CONTEXT_TYPES)}
    yield "POST", "/api/research/ask", {"query": ASKED, "documents": ["salarie"]}
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
    token, corpus = make_token(IndexPaths(root), EVA.name, EVA.tenant)[0].reveal(), read_corpus(root)
    unseen = forbidden(corpus, Rules(None), EVA)
    doc_id = next(ref for ref in corpus.things if ref.startswith("document:")).removeprefix("document:")
    with served_here(root, tmp_path) as server:
        own = answers(server, server.token, doc_id)
        seen = answers(server, token, doc_id)
    shown = [what for what, answer in own if any(each.encode() in answer.body for each in corpus.everything)]
    assert len(shown) >= 18, "the owner sees it"
    assert dict(seen)["GET /api/sessions/s None"].status == 404, "the owner's session is not hers"
    assert b"turns" in dict(seen)["GET /api/sessions/s?again None"].body
    for what, answer in seen:
        assert answer.status < 500, (what, answer.body)
        assert [each for each in unseen if each.encode() in answer.body] == [], what
        assert not answer.headers.get("content-type", "").startswith(("image/", "application/pdf")), what
    with Index(root) as index:
        audited = [entry for entry in index.policy.audit().entries(limit=1000) if entry.principal == EVA.name]
    assert {"ask", "search", "context", "recall", "package"} <= {entry.purpose for entry in audited}


def test_a_model_elsewhere_is_sent_what_the_policy_permits(root: Path, tmp_path: Path, serving: Serving) -> None:
    heard: list[str] = []

    def respond(call: Call) -> None:
        heard.append(json.dumps(call.body))
        call.reply("Figures are uploaded [1].")

    policy = """
        permit (principal, action, resource);
        forbid (principal, action == Action::"send", resource) when { resource.classification == "Confidential" };
    """
    settings = Settings(model="tiny", model_url=serving(respond).url, policy=policy_of(tmp_path, policy))
    with Index(root, settings) as index:
        kept, *others = index.ask(ASKED).sources
        Labels(lambda: index.catalog).put(kept.ref, {"classification": "Confidential"})
        context = index.ask(ASKED)
        prompt = index.prompt(context)
        written = index.answer(context).written
    secret = set(CANARY.findall(kept.markdown_content)) - set(CANARY.findall(str(others)))
    assert secret
    assert secret <= set(CANARY.findall(context.formatted_text))
    assert written.text
    for sent in [*(message.text for message in prompt.messages), *heard]:
        assert not secret & set(CANARY.findall(sent))
    assert any(set(CANARY.findall(body)) for body in heard), "the others are sent"
