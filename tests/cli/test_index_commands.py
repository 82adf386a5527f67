"""ctx status, init and doctor."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from research.store import IndexPaths, write_lock


def test_status_counts(call, filled: Path) -> None:
    document = call("status", "--json", "--index", str(filled)).document
    assert document["schema"] == "ctx.status/2"
    assert (document["documents"], document["pages"], document["chunks"]) == (4, 6, 5)
    assert document["pages_without_text"] == 1
    assert document["chosen_by"] == "--index"
    assert document["text_encoder"].startswith("all-MiniLM")
    assert document["size_bytes"] > 10_000
    assert not document["collections_behind"]
    assert document["writer_pid"] is None
    shown = call("status", "--index", str(filled)).out
    assert f"index        {filled}  (--index)\n" in shown
    assert "pages        6, 1 without text\n" in shown
    assert "collections  up to date\n" in shown


def test_status_tells_what_is_unfinished_and_who_writes(call, words_only: Path) -> None:
    with write_lock(IndexPaths(words_only)):
        shown = call("status", "--index", str(words_only)).out
    assert "unfinished   4 documents wait for 5 vectors; finish with: ctx ingest PATH\n" in shown
    assert f"writing      process {os.getpid()}\n" in shown


def test_status_sees_collections_left_behind(call, copied: Path) -> None:
    shutil.rmtree(copied / "chroma")
    assert call("status", "--json", "--index", str(copied)).document["collections_behind"]
    assert "the next ctx ask mends them" in call("status", "--index", str(copied)).out


def test_status_without_an_index_is_no_error(call, tmp_path: Path) -> None:
    ran = call("status", "--index", str(tmp_path / "none"))
    assert ran.code == 0
    assert "nothing there yet" in ran.out
    assert not call("status", "--json", "--index", str(tmp_path / "none")).document["exists"]
    assert not (tmp_path / "none").exists()


def test_status_says_why_this_index(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    (project / "deep").mkdir(parents=True)
    monkeypatch.chdir(project / "deep")

    def chosen() -> tuple[str, str]:
        document = call("status", "--json").document
        return document["index"], document["chosen_by"]

    assert chosen()[1] == "the default; no .ctx here or above"
    assert call("init", str(project)).code == 0
    assert chosen() == (str(project / ".ctx"), "the nearest .ctx upward")
    config = tmp_path / "home/config/ctx/config.toml"
    config.parent.mkdir(parents=True)
    config.write_text(f"index = '{tmp_path / 'mine'}'")
    assert chosen() == (str(tmp_path / "mine"), f"set in {config}, line 1")
    (project / "ctx.toml").write_text("index = 'there'")
    assert chosen() == (str(project / "there"), f"set in {project / 'ctx.toml'}, line 1")
    (project / "ctx.toml").write_text("max_tokens = 5")
    assert chosen() == (str(tmp_path / "mine"), f"set in {config}, line 1")
    monkeypatch.setenv("CTX_INDEX", str(tmp_path / "env"))
    assert chosen() == (str(tmp_path / "env"), "CTX_INDEX")


def test_init_makes_a_private_folder_once(call, tmp_path: Path) -> None:
    folder = tmp_path / "new" / ".ctx"
    first = call("init", str(tmp_path / "new"))
    assert (first.code, first.out) == (0, f"{folder}\n")
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (folder / ".gitignore").read_text() == "*\n"
    folder.chmod(0o755)
    again = call("init", str(tmp_path / "new"), "--json")
    assert again.document == {"schema": "ctx.init/1", "index": str(folder), "created": False}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert "already" in again.err


@pytest.mark.parametrize("args", [["ask", "x"], ["search", "x"], ["show", "a.pdf", "1"], ["doctor", "--reindex"]])
def test_an_index_just_made_is_empty(call, tmp_path: Path, args: list[str]) -> None:
    assert call("init", str(tmp_path)).code == 0
    ran = call(*args, "--index", str(tmp_path / ".ctx"))
    assert ran.code == 3
    assert ran.err == f"ctx: error: the index {tmp_path}/.ctx is empty\nhint: add documents first: ctx ingest PATH\n"
    none = call(*args, "--index", str(tmp_path / "none"))
    assert (none.code, "there is no index at" in none.err) == (3, True)


def test_init_tells_of_an_index_that_is_used_instead(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project, inner = tmp_path / "project", tmp_path / "project" / "inner"
    assert "note" not in call("init", str(project)).err
    nested = call("init", str(inner))
    assert nested.code == 0
    assert f"whose index {project / '.ctx'} stays in use outside {inner}" in nested.err
    assert call("init", str(inner), "--quiet").err == ""
    (inner / "ctx.toml").write_text("index = 'there'")
    assert f"commands here use {inner / 'there'}, not this one (set in ctx.toml" in call("init", str(inner)).err
    monkeypatch.setenv("CTX_INDEX", str(tmp_path / "mine"))
    named = call("init", str(project))
    assert named.out == f"{project / '.ctx'}\n"
    assert f"note: commands here use {tmp_path / 'mine'}, not this one (CTX_INDEX is set)" in named.err


def test_init_where_nothing_can_be_made(call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ran = call("init", str(tmp_path / "file"))
    assert ran.code == 1
    assert "cannot create the index folder" in ran.err


def severities(document: dict[str, list[dict[str, str]]]) -> dict[str, str]:
    return {check["name"]: check["severity"] for check in document["checks"]}


def test_doctor_of_a_sound_index(call, filled: Path) -> None:
    ran = call("doctor", "--json", "--index", str(filled))
    assert ran.code == 0
    found = severities(ran.document)
    assert found == {
        "python": "ok",
        "packages": "ok",
        "sqlite": "ok",
        "encoder": "ok",
        "tokens": "ok",
        "telemetry": "ok",
        "folder": "ok",
        "catalog": "ok",
        "collections": "ok",
        "text": "ok",
        "visual": "ok",
        "unfinished": "ok",
        "given up": "ok",
        "consistency": "ok",
        "files": "warn",  # the fixture's files never were
    }
    assert ran.document["summary"] == {"ok": 14, "warn": 1, "fail": 0}
    assert all(check["remedy"] for check in ran.document["checks"] if check["severity"] != "ok")


def test_doctor_of_a_torn_catalog_fails_with_a_remedy(call, copied: Path) -> None:
    (copied / "catalog.sqlite3").write_bytes(b"no database at all" * 500)
    ran = call("doctor", "--index", str(copied))
    assert ran.code == 1
    line = next(line for line in ran.out.splitlines() if line.startswith("fail\tcatalog"))
    assert "not a database" in line
    assert "move the folder away" in line


def test_doctor_on_a_terminal(on_terminal, filled: Path) -> None:
    ran = on_terminal(["doctor", "--index", str(filled)], env={"NO_COLOR": "1"})
    assert ran.code == 0
    assert "→ moved? ctx ingest NEWPLACE" in " ".join(ran.out.split())


@pytest.mark.parametrize("args", [["status"], ["ask", "q"], ["list"], ["doctor"], ["ingest", "."]])
def test_a_file_is_no_index(call, tmp_path: Path, args: list[str]) -> None:
    (tmp_path / "file").write_text("")
    ran = call(*args, "--index", str(tmp_path / "file"))
    assert ran.code == 2
    assert "is a file, not an index folder" in ran.err
