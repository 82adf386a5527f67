"""ctx backup, restore and doctor --fix as they are typed; and an index of a newer ctx."""

from __future__ import annotations

import os
import shutil
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path

import pytest

from cli.app import COMMANDS
from research.store import IndexPaths, check_index, write_lock


def test_a_backup_and_back(call, filled: Path, tmp_path: Path) -> None:
    file, index = tmp_path / "b.zip", tmp_path / "back"
    first = call("backup", str(file), "--index", str(filled))
    assert (first.code, first.out) == (0, f"{file}\n")
    assert "4 documents, 6 pages, 0 image files" in first.err
    again = call("backup", str(file), "--json", "--index", str(filled))
    assert again.code == 2
    assert "--force" in again.document["hint"]
    forced = call("backup", str(file), "--force", "--no-images", "--json", "--index", str(filled)).document
    assert (forced["schema"], forced["documents"], forced["pages"]) == ("ctx.backup/1", 4, 6)
    assert forced["size_bytes"] == file.stat().st_size

    back = call("restore", str(file), "--json", "--index", str(index)).document
    assert (back["schema"], back["index"], back["documents"]) == ("ctx.restore/1", str(index), 4)
    asked = [call("ask", "housing bubble", "--json", "--index", str(root)).document for root in (filled, index)]
    assert asked[0]["formatted_text"] == asked[1]["formatted_text"]
    refused = call("restore", str(file), "--index", str(index))
    assert refused.code == 2
    assert "holds 4 documents" in refused.err


def test_reindex_and_doctor_fix(call, copied: Path) -> None:
    index = IndexPaths(copied)
    with closing(sqlite3.connect(index.catalog)) as catalog:
        catalog.execute("DELETE FROM page_words")
        catalog.commit()
    shutil.rmtree(index.chroma)
    index.spool.mkdir()
    sick = [check for check in check_index(index) if check.name == "consistency"]
    assert [(check.remedy, check.fixable) for check in sick] == [("ctx doctor --fix", True)] * 2
    fixed = call("doctor", "--fix", "--json", "--index", str(copied))
    assert fixed.code == 0
    assert {(repair["name"], repair["fixed"]) for repair in fixed.document["repairs"]} == {
        ("full text", True),
        ("leftovers", True),
        ("collections", True),
    }
    assert {c["severity"] for c in fixed.document["checks"] if c["name"] != "files"} == {"ok"}
    ran = call("doctor", "--reindex", "--json", "--index", str(copied))
    assert ran.code == 0
    [rebuilt] = ran.document["repairs"]
    assert (rebuilt["name"], rebuilt["fixed"]) == ("reindex", True)
    assert rebuilt["message"].startswith("full text of 6 pages, 5 chunks and ")


def test_doctor_fix_says_what_it_cannot_do(call, copied: Path) -> None:
    (copied / "catalog.sqlite3").write_bytes(b"no database at all" * 500)
    ran = call("doctor", "--fix", "--index", str(copied))
    assert ran.code == 1
    assert ran.out.startswith("unfixed\tcatalog\t")
    assert "ctx restore FILE --force" in ran.out


@pytest.mark.parametrize("args", [["doctor", "--reindex"], ["doctor", "--fix"]])
def test_a_writer_at_work_is_named(call, copied: Path, args: list[str]) -> None:
    with write_lock(IndexPaths(copied)):
        ran = call(*args, "--index", str(copied))
    assert ran.code == 1
    assert f"process {os.getpid()} is writing this index" in ran.err


@pytest.mark.parametrize("name", ["backup", "doctor"])
def test_without_an_index(call, tmp_path: Path, name: str) -> None:
    args = {"backup": [str(tmp_path / "b.zip")], "doctor": ["--fix"]}.get(name, [])
    ran = call(name, *args, "--index", str(tmp_path / "none"))
    assert ran.code == (0 if name == "doctor" else 3)
    assert not (tmp_path / "none").exists()
    assert not (tmp_path / "b.zip").exists()


_ARGUMENTS = {
    "ask": ["housing"],
    "search": ["housing"],
    "show": ["crisis.pdf", "1"],
    "open": ["crisis.pdf", "1", "--print"],
    "tag": ["add", "crisis.pdf", "tag"],
    "watch": ["{folder}"],
    "remove": ["crisis.pdf", "--yes"],
    "backup": ["{folder}/out.zip"],
    "restore": ["{folder}/backup.zip", "--force"],
    "ingest": ["{folder}/a.pdf"],
    "eval": ["{folder}/questions.jsonl"],
    "graph": ["crisis.pdf"],
    "remember": ["Anna moved to Bonn"],
    "forget": ["mem-0000000000000000", "--yes"],
    "context": ["housing"],
}
# Those that take no --index need none.
# An agent's client cannot show why a server did not start, so `mcp` starts and its tools tell. A turn is
# built without memories, with a note.
_OF_AN_INDEX = [name for group in COMMANDS.values() for name in group if name not in ("mcp", "turn", "init")]


@pytest.mark.parametrize("name", _OF_AN_INDEX)
def test_an_index_of_a_newer_ctx_is_refused_kindly(call, make_pdf, copied: Path, tmp_path: Path, name: str) -> None:
    make_pdf("a.pdf", ["Some text"])
    (tmp_path / "questions.jsonl").write_text('{"query": "housing", "gold": [["crisis.pdf", 2]]}\n')
    if name == "restore":
        assert call("backup", str(tmp_path / "backup.zip"), "--index", str(copied)).code == 0
    with closing(sqlite3.connect(copied / "catalog.sqlite3")) as catalog:
        catalog.execute("PRAGMA user_version = 99")
    args = [arg.format(folder=tmp_path) for arg in _ARGUMENTS.get(name, [])]
    ran = call(name, *args, *(["--fix"] if name == "doctor" else []), "--index", str(copied))
    assert ran.code == 1
    told = ran.out + ran.err
    assert told.count("was written by a newer ctx (schema 99") == (2 if name == "doctor" else 1)
    assert "upgrade ctx" in told
    assert not (tmp_path / "out.zip").exists()
    with closing(sqlite3.connect(copied / "catalog.sqlite3")) as catalog:
        assert catalog.execute("PRAGMA user_version").fetchone()[0] == 99
        assert catalog.execute("SELECT COUNT(*) FROM documents").fetchone()[0] == 4


def test_a_restore_tells_of_an_encoder_that_is_not_ours(call, copied: Path, tmp_path: Path) -> None:
    assert call("backup", str(tmp_path / "own.zip"), "--index", str(copied)).code == 0
    own = call("restore", str(tmp_path / "own.zip"), "--index", str(tmp_path / "own"))
    assert (own.code, "allow" in own.err) == (0, False)
    with closing(sqlite3.connect(copied / "catalog.sqlite3")) as catalog:
        catalog.execute("UPDATE meta SET value = 'sentence-transformers:./model' WHERE key = 'text_encoder'")
        catalog.execute("UPDATE meta SET value = 'colpali:hub/name' WHERE key = 'visual_encoder'")
        catalog.commit()
    assert call("backup", str(tmp_path / "foreign.zip"), "--index", str(copied)).code == 0
    foreign = call("restore", str(tmp_path / "foreign.zip"), "--index", str(tmp_path / "foreign"))
    assert foreign.code == 0
    assert "filled by sentence-transformers:./model, which is not part of ctx" in foreign.err
    assert "filled by colpali:hub/name" in foreign.err


def test_a_refused_restore_says_why_and_changes_nothing(call, copied: Path, tmp_path: Path) -> None:
    file = tmp_path / "b.zip"
    assert call("backup", str(file), "--index", str(copied)).code == 0
    with zipfile.ZipFile(file) as opened:
        catalog, manifest = opened.read("catalog.sqlite3"), opened.read("ctx-backup.json")
    asked = call("ask", "housing bubble", "--json", "--index", str(copied)).document["formatted_text"]
    for data, said, words in (
        (catalog[:-4096], manifest, "catalog"),
        (catalog, b"[" * 60_000, "its manifest cannot be read"),
        (catalog, manifest.replace(b": 4,", b": Infinity,"), "its manifest cannot be read"),
    ):
        with zipfile.ZipFile(file, "w") as opened:
            opened.writestr("catalog.sqlite3", data)
            opened.writestr("ctx-backup.json", said)
        ran = call("restore", str(file), "--force", "--index", str(copied))
        assert ran.code == 1
        assert f"{file} cannot be restored: " in ran.err
        assert words in ran.err
        assert "hint: nothing was changed" in ran.err
        assert call("ask", "housing bubble", "--json", "--index", str(copied)).document["formatted_text"] == asked
