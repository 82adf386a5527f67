"""Everything that commands print with --json, held to its schema: an undocumented field fails, and so does a missing
one. Outputs are those of the real commands, of good, bad and odd indexes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from cli.app import COMMANDS
from cli.schemas import load, names
from research.models import SourceDocument
from research.store import IndexPaths, write_lock
from tests.in_process import Ran

Call = Callable[..., Ran]
Check = Callable[..., dict[str, Any]]

# These print text, a schema itself, the documents of another, or speak a protocol.
WITHOUT = {"chat", "mcp", "session", "watch"}
# Of the contract (seed 004); `doc_id`, `filename` and `page` go by these names in every command.
CONTRACT = {
    "doc_id", "filename", "page", "extension", "thumbnail_path", "image_path", "timestamp", "section_path",
    "parent_heading", "markdown_content", "relevance_score",
}  # fmt: skip
OTHER_NAMES = {"thumb_path", "score", "rank", "path", "file_name", "document", "doc", "markdown", "text", "uri", "url"}


def validate(document: Mapping[str, Any]) -> None:
    name = str(document["schema"]).removeprefix("ctx.").partition("/")[0]
    problems = list(Draft202012Validator(load(name)).iter_errors(document))
    assert problems == [], f"{document['schema']}: {problems[0].json_path}: {problems[0].message[:300]}"


@pytest.fixture
def told(call: Call) -> Check:
    """The document of a command, which is as its schema says."""

    def run(*args: str, code: int | None = 0, kind: str = "") -> dict[str, Any]:
        ran = call(*args, "--json")
        assert code in (ran.code, None), ran.err
        document = ran.document
        validate(document)
        assert document["schema"].startswith(f"ctx.{kind or args[0]}/")
        return document

    return run


def test_every_command_has_a_schema_and_every_schema_a_command() -> None:
    # ctx session, show DOC 3-5, show --outline, ask --show-prompt, experience premortem
    others = {"error", "sessions", "pages", "outline", "prompt", "premortem"}
    assert set(names()) == {name for group in COMMANDS.values() for name in group} - WITHOUT | others


@pytest.mark.parametrize("name", names())
def test_a_schema_is_one_and_leaves_nothing_open(name: str) -> None:
    schema = load(name)
    Draft202012Validator.check_schema(schema)
    version = schema["properties"]["schema"]["const"]
    assert re.fullmatch(rf"ctx\.{name}/\d+", version)
    assert (schema["title"], schema["$id"]) == (version, version.replace("ctx.", "urn:ctx:").replace("/", ":"))
    for part in objects(schema):
        assert "additionalProperties" in part, part
        assert set(part.get("required", ())) <= set(part.get("properties", ()))


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, list):
        for each in schema:
            yield from objects(each)
    elif isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for each in schema.values():
            yield from objects(each)


def fields_of(name: str, part: str = "") -> set[str]:
    """What a document may hold, or what is called `part` in its definitions."""
    schema = load(name)
    return set((schema["$defs"][part] if part else schema)["properties"])


def test_one_name_for_one_field() -> None:
    """A page or a document is described by the contract's names, whichever command does it."""
    for name in names():
        for part in [load(name), *objects(load(name))]:
            fields = set(part.get("properties", ()))
            if "filename" in fields or {"doc_id", "page"} <= fields:
                assert not fields & OTHER_NAMES, f"{name}: {fields & OTHER_NAMES}"
    source, result = fields_of("ask", "Page") | {"markdown_content"}, fields_of("search", "PageResult")
    assert source >= CONTRACT
    assert source - {"citation", "kind", "name", "withheld"} == set(SourceDocument("d", "f", 1, "pdf").to_dict())
    assert {"ref", "link"} <= source & result
    assert CONTRACT - {"relevance_score"} <= fields_of("show")
    assert CONTRACT & {"relevance_score", "thumbnail_path", "image_path", "section_path"} <= result


@pytest.mark.parametrize(
    "question", ["housing bubble", "what is on page 2 of crisis.pdf?", "summarise crisis.pdf", "?", "xylophone"]
)
def test_answers(told: Check, filled: Path, question: str) -> None:
    for command in ("ask", "search"):
        told(command, question, "--index", str(filled), code=None)


@pytest.mark.slow
def test_answers_of_other_shapes(told: Check, filled: Path, words_only: Path) -> None:
    at = ("--index", str(filled))
    cut = told("ask", "housing bubble banks", "--max-tokens", "80", *at)
    assert cut["truncated"]
    assert cut["dropped"]
    assert any(source["cut"] for source in cut["sources"])
    assert told("ask", "housing", "--max-tokens", "5", *at)["sources"] == []
    suspicious = told("ask", "zebra", "--mode", "lexical", *at)["sources"][0]
    assert suspicious["suspicious"]
    for option in (("--full",), ("--explain",), ("--doc", "crisis", "--pages", "1-2")):
        told("ask", "housing bubble", *option, *at)
    assert not told("ask", "housing", "--index", str(words_only))["coverage"]["complete"]
    told("search", "housing", "--index", str(words_only))


@pytest.mark.slow
def test_answers_of_real_documents(told: Check, sample_index: Path) -> None:
    """With boxes, page pictures, OCR, sections, rewrites and passages over page breaks."""
    at = ("--index", str(sample_index))
    for question in ("How many days of leave do new employees get?", "Net sales in FY2024", "cracks in the footbridge"):
        document = told("ask", question, *at)
        assert document["sources"][0]["image_path"]
        told("search", question, *at)
    told("show", "saltmarsh-handbook-2024.pdf", "3", "--for", "leave", *at)
    told("list", *at)
    told("status", *at)


def test_lines_of_a_batch(call: Call, filled: Path, tmp_path: Path) -> None:
    file = tmp_path / "questions"
    file.write_text('housing\n\n{"question": "housing", "id": 1, "max_tokens": 60}\n{"id": "x", "doc": 1}\n{bad\n')
    ran = call("ask", "--batch", str(file), "--index", str(filled))
    documents = [json.loads(line) for line in ran.out.splitlines()]
    for document in documents:
        validate(document)
        assert "line" in document
    assert [document["schema"] for document in documents] == [
        "ctx.ask/2", "ctx.error/1", "ctx.ask/2", "ctx.error/1", "ctx.error/1",
    ]  # fmt: skip


def test_what_is_read(told: Check, filled: Path, tmp_path: Path) -> None:
    at = ("--index", str(filled))
    assert len(told("list", *at)["documents"]) == 4
    for document, page in (("crisis.pdf", "2"), ("crisis-annex.pdf", "1"), ("cccc000000000003", "1")):
        told("show", document, page, *at)
    assert told("show", "crisis.pdf", "2", "--for", "housing bubble", *at)["regions"]
    told("status", *at)
    questions = tmp_path / "questions.jsonl"
    lines = [
        {"qid": "a", "query": "zebra text", "gold": [["crisis-annex.pdf", 1]], "kind": "scan"},
        {"qid": "b", "query": "housing", "gold": [["nowhere.pdf", 1]], "kind": "text"},
        {"qid": "c", "query": "housing", "gold": [["crisis.pdf", 9]], "kind": "text"},
    ]
    questions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    told("eval", str(questions), "--failures", "--slice", "kind", *at)
    told("eval", str(questions), "--per-doc", *at)


def test_an_empty_index_and_none(told: Check, tmp_path: Path) -> None:
    assert told("init", str(tmp_path))["created"]
    for index in (tmp_path / ".ctx", tmp_path / "none"):
        at = ("--index", str(index))
        assert told("list", *at)["documents"] == []
        assert told("tag", *at)["tags"] == []
        assert told("token", "list", *at)["tokens"] == []
        assert told("audit", *at)["entries"] == []
        assert told("audit", "verify", *at)["verification"]["ok"]
        assert told("label", *at)["labels"] == []
        assert told("policy", *at)["policies"] == []
        told("status", *at)
        told("doctor", *at)
        told("ask", "housing", *at, code=3, kind="error")
        told("show", "crisis.pdf", "1", *at, code=3, kind="error")


@pytest.mark.slow
def test_what_is_written(told: Check, copied: Path, tmp_path: Path, make_pdf: Callable[..., Path]) -> None:
    at = ("--index", str(copied))
    docs = make_pdf("a.pdf", ["The walrus has tusks"], tmp_path / "docs").parent
    other = make_pdf("b.pdf", ["The penguin cannot fly"], docs)
    (docs / "broken.pdf").write_text("no PDF")
    (docs / "notes.txt").write_text("another kind")
    (docs / "dangling.pdf").symlink_to("nowhere.pdf")
    first = told("ingest", str(docs), "--no-images", *at, code=4)
    assert {file["result"] for file in first["files"]} == {"added", "failed"}
    other.unlink()
    pruned = told("ingest", str(docs), "--prune", "--no-images", *at, code=4)
    assert [document["filename"] for document in pruned["removed"]] == ["b.pdf"]
    assert told("tag", "add", "a.pdf", "sea", "2026", *at)["documents"][0]["tags"] == ["2026", "sea"]
    assert told("tag", "show", "a.pdf", *at)["documents"]
    assert [entry["tag"] for entry in told("tag", *at)["tags"]] == ["2026", "sea"]
    told("tag", "remove", "a.pdf", "sea", *at)
    assert told("label", "set", "a.pdf", "--level", "confidential", *at)["labels"][0]["value"] == "Confidential"
    assert told("label", "show", "a.pdf", *at)["things"][0]["classification"] == "Confidential"
    assert told("label", "propose", *at)["proposals"] == []
    assert told("label", "set", "path:docs/*", "--status", "final", *at)["labels"][0]["name"] == "status"
    ref = f"page:{told('list', *at)['documents'][0]['doc_id']}#1"
    assert told("policy", "try", ref, *at)["decision"]["rulings"][0]["effect"] == "allow"
    assert told("policy", "example", *at)["example"]
    assert told("open", "a.pdf", "1", "--print", *at)["source_path"] == str(docs / "a.pdf")
    told("open", "crisis.pdf", "1", "--print", *at, code=1, kind="error")
    made = told("token", "new", "--principal", "ann", "--tenant", "lab", "--expires", "9", *at)["created"]
    assert told("token", *at)["tokens"] == [made]
    assert told("token", "revoke", made["id"], *at)["revoked"] == [made]
    told("doctor", "--fix", *at)
    told("doctor", "--reindex", *at)
    told("backup", str(tmp_path / "b.zip"), *at)
    told("restore", str(tmp_path / "b.zip"), "--index", str(tmp_path / "back"))
    told("remember", "Anna moved to Bonn", *at)
    told("recall", "Where does Anna live?", *at)
    told("recall", *at)
    told("forget", "--all", "--dry-run", *at)
    told("forget", "--all", "--yes", *at)
    told("remove", "a.pdf", "--dry-run", *at)
    told("remove", "a.pdf", *at)
    with write_lock(IndexPaths(copied)):
        assert told("status", *at)["writing"]
        told("remove", "crisis.pdf", *at, code=1, kind="error")


@pytest.mark.parametrize(
    "args",
    [
        ("ask",),
        ("ask", " "),
        ("ask", "q", "--max-tokens", "0"),
        ("ask", "q", "--pages", "x"),
        ("search", "q", "--doc", "nowhere"),
        ("show", "crisis.pdf", "99"),
        ("nonsense",),
        ("ingest", "/nowhere/at/all"),
        ("schema", "nonsense"),
        ("restore", "nowhere.zip"),
        ("eval", "nowhere.jsonl"),
        ("tag", "add"),
        ("token", "new"),
        ("label", "set", "crisis.pdf", "--level", "sekret"),
        ("label", "set", "crisis.pdf"),
        ("policy", "check", "nowhere.cedar"),
        ("policy", "try"),
        ("token", "revoke", "nonsense"),
        ("open", "7"),
    ],
)
def test_errors(call: Call, filled: Path, args: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTX_INDEX", str(filled))
    ran = call(*args, "--json")
    validate(ran.document)
    assert ran.document["schema"] == "ctx.error/1"
    assert ran.document["exit_code"] == ran.code > 0


def test_schemas_are_printed(call: Call) -> None:
    assert call("schema").out.split() == names()
    for name in names():
        ran = call("schema", name)
        assert (ran.code, json.loads(ran.out)) == (0, load(name))
    unknown = call("schema", "sauces")
    assert (unknown.code, unknown.out) == (3, "")
    assert "there are: ask, audit, backup" in unknown.err
