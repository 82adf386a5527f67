"""An id that a script once noted goes on working after the file has changed, in every command and in the library."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest import ingest
from research import ChromaClient, ContextBuilder, Filters, SearchEngine
from research.index import Index
from research.settings import Settings
from tests.conftest import built_once, write_pdf
from tests.in_process import Ran

Call = Callable[..., Ran]

BEFORE = "The walrus has tusks of ivory, before."
AFTER = "The walrus has tusks of ivory, afterwards."


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with docs/walrus.pdf, changed since it was first read and tagged, docs/seal.pdf, and their index."""

    def make(root: Path) -> None:
        walrus = write_pdf(root / "docs" / "walrus.pdf", ["One", BEFORE])
        write_pdf(root / "docs" / "seal.pdf", ["The seal sleeps on the ice."])
        with Index(root / "index", Settings(images=False)) as index:
            first = ingest(index, root / "docs")
            index.documents.tag("walrus.pdf", "sea")
            write_pdf(walrus, ["One", AFTER])
            second = ingest(index, root / "docs")
        old, new = ([f.doc_id for f in run.files if "walrus" in f.path] for run in (first, second))
        (root / "ids.json").write_text(json.dumps([*old, *new]))

    return built_once(tmp_path_factory, "changed-file", make)


@pytest.fixture
def ids(changed: Path) -> tuple[str, str]:
    old, new = json.loads((changed / "ids.json").read_text())
    return old, new


@pytest.fixture
def index(changed: Path, tmp_path: Path) -> str:
    return str(shutil.copytree(changed / "index", tmp_path / "copied-index"))


@pytest.mark.slow
def test_commands_that_read(call: Call, index: str, ids: tuple[str, str], tmp_path: Path) -> None:
    old, new = ids
    for name in (old, f"file-{old}", old[:7], f"page:{old}#2", new, f"page:{new}#2"):
        shown = call("show", name, "2", "--json", "--index", index).document
        assert (shown["doc_id"], AFTER in shown["markdown_content"]) == (new, True)
        assert call("tag", "show", name, "--json", "--index", index).document["documents"][0]["tags"] == ["sea"]
    for name in (old[:7], f"page:{old}#2"):
        asked = call("ask", "walrus ice", "--doc", name, "--json", "--index", index)
        assert {source["doc_id"] for source in asked.document["sources"]} == {new}
        assert {source["file_id"] for source in asked.document["sources"]} == {f"file-{old}"}
        without = call("search", "walrus ice", "--not-doc", name, "--json", "--index", index)
        assert {result["filename"] for result in without.document["results"]} == {"seal.pdf"}
    for name, page in ((old, 1), (f"page:{old}#2", 2), (f"file-{old}", 1)):
        opened = call("open", name, "--print", "--json", "--index", index).document
        assert (opened["doc_id"], opened["page"], opened["ref"]) == (new, page, f"page:{new}#{page}")
        assert opened["link"].endswith(f"/docs/walrus.pdf#page={page}")
    lines = tmp_path / "lines.jsonl"
    lines.write_text(json.dumps({"question": "walrus", "doc": old}) + "\n")
    batch = call("ask", "--batch", str(lines), "--index", index)
    assert {source["doc_id"] for source in batch.document["sources"]} == {new}
    listed = call("list", "--json", "--index", index).document["documents"]
    assert {document["file_id"] for document in listed if document["filename"] == "walrus.pdf"} == {f"file-{old}"}


def test_commands_that_write(call: Call, index: str, ids: tuple[str, str]) -> None:
    old, new = ids
    assert call("tag", "add", old, "north", "--index", index).out == "walrus.pdf\tnorth\tsea\n"
    assert call("tag", "remove", f"file-{old}", "sea", "--index", index).out == "walrus.pdf\tnorth\n"
    planned = call("remove", old, "--dry-run", "--json", "--index", index).document
    assert [document["doc_id"] for document in planned["would_remove"]] == [new]
    assert call("remove", old, "--index", index).out == f"removed\twalrus.pdf\t{new}\n"
    gone = call("show", old, "1", "--index", index)
    assert (gone.code, gone.out) == (3, ""), "former ids go with the document"


def test_the_contract(index: str, ids: tuple[str, str]) -> None:
    old, new = ids
    with ChromaClient(index) as client:
        engine = SearchEngine(client)
        builder = ContextBuilder(engine, client)
        for name in (old, new, f"file-{old}"):
            source = asyncio.run(builder.get_source_metadata(name, 2))
            assert (source.doc_id, source.file_id) == (new, f"file-{old}")
            assert {found.page.doc_id for found in engine.run("walrus", documents=[name]).found} == {new}
        for name in ("walrus.pdf", new[:8], "0" * 16):
            with pytest.raises(ValueError, match="has no page 2 in this index"):
                asyncio.run(builder.get_source_metadata(name, 2))
        context = asyncio.run(builder.build_context("walrus ice", filters=Filters(documents=(old,), pages="2")))
        assert [(source.doc_id, source.page) for source in context.sources] == [(new, 2)]


@pytest.mark.slow
def test_a_backup_brings_them_back(call: Call, index: str, ids: tuple[str, str], tmp_path: Path) -> None:
    old, new = ids
    assert call("backup", str(tmp_path / "b.zip"), "--index", index).code == 0
    assert call("restore", str(tmp_path / "b.zip"), "--index", str(tmp_path / "back")).code == 0
    shown = call("show", old, "2", "--json", "--index", str(tmp_path / "back")).document
    assert (shown["doc_id"], shown["file_id"]) == (new, f"file-{old}")
    assert call("search", "walrus", "--tag", "SEA", "--index", str(tmp_path / "back")).code == 0
