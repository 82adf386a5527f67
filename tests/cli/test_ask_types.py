"""ctx ask --types: a cited mix at the prompt, in JSON, with a model, over HTTP and as a tool."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import jsonschema
import pytest
from pydantic import TypeAdapter

from research.context import TokenCounter
from research.governance import Principal
from research.index import Index
from research.service.schemas import AskDocument
from tests.cli.answers import without_escapes
from tests.cli.test_schemas import validate
from tests.in_process import Ran
from tests.loopback import Serving
from tests.mcp_driving import Driver, agent_of, fields_of, text_of, wire_tokens
from tests.research.service.serving_app import run_client

ASKED = "why do uploads stop and are parts sent again"
ALL = "documents,code,commits,memories,experiences,values"
KEY = "the key under the mat"

Call = Callable[..., Ran]


@pytest.fixture
def ask(call: Call, of_everything: Path) -> Call:
    def run(*args: str, question: str = ASKED) -> Ran:
        return call("ask", question, "--index", str(of_everything), *args)

    return run


def test_in_a_pipe_the_context_alone_within_the_budget(ask: Call) -> None:
    ran = ask("--types", ALL, "--max-tokens", "500")
    assert ran.code == 0
    kinds = re.findall(r"^\[(\w+) \d+: .*\]$", ran.out, re.MULTILINE)
    assert {"Document", "Code", "Experience"} <= set(kinds)
    assert TokenCounter().count(ran.out.rstrip("\n")) <= 500
    assert "truncated" in ran.err
    assert ask("--types", "documents").out == ask().out


def test_the_document_is_as_its_schema_says(ask: Call) -> None:
    document = ask("--types", ALL, "--json").document
    validate(document)
    assert document["types"] == ["documents", "memories", "code", "experiences", "values", "commits"]
    assert {each["kind"] for each in document["sources"]} == {"page", "code", "commit", "memory", "experience"}
    assert all({"name", "ref", "title", "relevance_score", "link"} <= each.keys() for each in document["sources"])
    assert not any("markdown_content" in each for each in document["sources"]), "formatted_text has it"
    few = ask("--types", ALL, "--json", "--max-tokens", "90").document
    validate(few)
    assert few["dropped"]
    code = ask("--types", "code", "--json").document
    assert code["sources"][0]["metadata"]["language"] == "python"
    assert "```python\ndef send_part" in code["formatted_text"]


def test_what_is_asked_wrongly_and_what_is_not_there(ask: Call, call: Call, tmp_path: Path) -> None:
    wrong = ask("--types", "documents,dreams")
    assert (wrong.code, "choose from: memories, code" in wrong.err) == (2, True)
    call("remember", "Deploys happen on Tuesdays.", "--index", str(tmp_path / "index"))
    empty = call("ask", ASKED, "--types", "documents,code,commits", "--index", str(tmp_path / "index"))
    assert (empty.code, empty.out) == (3, "")
    told = call("ask", "when are deploys?", "--types", "documents,memories", "--index", str(tmp_path / "index"))
    assert told.code == 0
    assert told.out.startswith("[Memory 1: ")


def test_batch_explain_html_and_session(ask: Call, call: Call, of_everything: Path, tmp_path: Path) -> None:
    (tmp_path / "lines").write_text(f"{ASKED}\n")
    batch = call("ask", "--batch", str(tmp_path / "lines"), "--types", "code", "--index", str(of_everything))
    document = json.loads(batch.out)
    validate(document)
    assert {each["kind"] for each in document["sources"]} == {"code"}
    explained = ask("--types", "code", "--explain").err
    assert "[1] src/uploads.py:3, send_part score 0." in explained
    html = ask("--types", "code,documents", "--html", "-").out
    assert '<span class="soft">code</span>' in html
    assert '<span class="soft">page 1</span>' in html
    assert ">Code: src/uploads.py:3, send_part</span></figcaption>" in ask("--types", "code", "--html", "-").out
    assert "page 0" not in html


def test_on_a_terminal(on_terminal: Callable[..., Ran], of_everything: Path) -> None:
    shown = on_terminal(["ask", ASKED, "--types", "documents,code", "--index", str(of_everything)])
    text = without_escapes(shown.out)
    assert re.search(r"\[\d\] manual\.pdf p\. 1", text)
    assert re.search(r"\[\d\] src/uploads\.py:3, send_part · code", text)
    alone = on_terminal(["ask", ASKED, "--types", "code", "--index", str(of_everything)])
    text = without_escapes(alone.out)
    assert "[1] Code: src/uploads.py:3, send_part\n" in text, "what a quote is of"
    assert re.search(r"The answer is [a-z ]+ in this code", text)
    assert "p. 0" not in text


def test_a_session_keeps_the_pages_and_no_more(call: Call, tmp_path: Path, of_everything: Path) -> None:
    import shutil

    shutil.copytree(of_everything, tmp_path / "index")
    at = ("--index", str(tmp_path / "index"))
    asked = call("ask", ASKED, "--types", "documents,code", "--session", "s", "--json", *at).document
    validate(asked)
    with Index.open(tmp_path / "index") as index:
        [turn] = index.sessions.get("s")
    pages = [each["citation"] for each in asked["sources"] if each["kind"] == "page"]
    assert [source.citation for source in turn.sources] == pages


def test_a_model_answers_from_the_mix_and_is_checked(
    ask: Call, serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = [each["kind"] for each in ask("--types", "code,commits", "--json").document["sources"]]
    code, commit = kinds.index("code") + 1, kinds.index("commit") + 1
    said = f"One part of an upload is sent again if the server closes the connection [{code}]."
    more = f" The server was asked too often [{commit}]. Tomatoes cause crises [{code}]."
    server = serving(lambda call: call.reply(said, more))
    monkeypatch.setenv("CTX_MODEL_URL", server.url)
    ran = ask("--types", "code,commits", "--answer", "--model", "m")
    assert ran.code == 0
    assert f"[{code}] Code: src/uploads.py:3, send_part\n" in ran.out
    assert "✓ 2 carried" in ran.err
    assert "Tomatoes" in ran.err
    prompt = server.calls[0].body["messages"][1]["content"]
    assert f'<source id="{code}" kind="code" name="src/uploads.py:3, send_part">\n```python\n' in prompt


def test_over_http(of_everything: Path, tmp_path: Path) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        body = {"query": ASKED, "types": ["documents", "code", "memories"]}
        found = (await client.post("/api/research/ask", json=body)).json()
        TypeAdapter(AskDocument).validate_python(found)
        assert {each["kind"] for each in found["sources"]} == {"page", "code", "memory"}
        code = (await client.post("/api/research/ask", json=body | {"types": ["code"]})).json()
        assert "[1] (Code: src/uploads.py:3, send_part)" in code["answer"]
        page = next(each for each in found["sources"] if each["kind"] == "page")
        assert page["page_url"].endswith("/pages/1") or page["page_url"].endswith("/pages/2")
        plain = (await client.post("/api/research/ask", json={"query": ASKED})).json()
        assert not {"kind", "name"} & plain["sources"][0].keys()
        wrong = await client.post("/api/research/ask", json={"query": ASKED, "types": ["dreams"]})
        assert wrong.status_code == 422
        other = (await client.post("/api/research/ask", json={"query": KEY, "types": ["memories"]})).json()
        assert "secret upload key" not in other["formatted_text"]

    async def as_eva(client: httpx.AsyncClient) -> None:
        body = {"query": KEY, "types": ["documents", "code", "memories"]}
        found = (await client.post("/api/research/ask", json=body)).json()
        assert "secret upload key" in found["formatted_text"]
        assert {each["kind"] for each in found["sources"]} == {"memory"}, "the rest is the owner's"

    run_client(work, of_everything)
    # What is decided for her is recorded, in an index that no other test reads.
    run_client(as_eva, Path(shutil.copytree(of_everything, tmp_path / "index")), caller=Principal("eva", "eva"))


@pytest.fixture(scope="module")
def agent(of_everything: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with agent_of(tmp_path_factory.mktemp("mcp") / "stderr", "--index", str(of_everything)) as driver:
        yield driver


@pytest.mark.slow
@pytest.mark.parametrize("text_in", ["content", "structured"])
@pytest.mark.parametrize("most", [300, 600, 2000])
def test_ask_and_search_code_hold_their_budget_on_the_wire(agent: Driver, most: int, text_in: str) -> None:
    schemas = {tool.name: tool.output_schema for tool in agent.do("list_tools").tools}
    for tool, more in (("ask", {"types": ALL.split(",")}), ("search_code", {})):
        result = agent.call(tool, question=ASKED, max_tokens=most, text_in=text_in, **more)
        assert wire_tokens(result) <= most
        jsonschema.validate(fields_of(result), schemas[tool])


def test_ask_with_types_as_a_tool(agent: Driver) -> None:
    result = agent.call("ask", question=ASKED, types=ALL.split(","), text_in="content")
    assert re.search(r"^\[Code \d+: src/uploads\.py:3, send_part\]$", text_of(result), re.MULTILINE)
    refs = [each["ref"] for each in fields_of(result)["sources"]]
    assert {ref.partition(":")[0] for ref in refs} == {"page", "code", "commit", "memory", "experience"}
    assert "choose from" in agent.refused("ask", question=ASKED, types=["dreams"])


def test_search_code_finds_by_words_and_by_name(agent: Driver) -> None:
    for question in ("how long to wait before a retry", "pauseBefore"):
        result = agent.call("search_code", question=question, text_in="content")
        first = fields_of(result)["results"][0]
        assert first["ref"].endswith("/src/uploads.py#pause_before")
        assert (first["file_path"], first["start_line"]) == ("src/uploads.py", 8)
        assert "[1] function pause_before | src/uploads.py:8-" in text_of(result)
        assert "def pause_before(part: bytes) -> None:\nSeconds to wait before a retry" in text_of(result)
    assert "No code was found" in agent.said("search_code", question="retry", language="cobol", text_in="content")
    assert fields_of(agent.call("search_code", question="retry", language="python"))["results"]
