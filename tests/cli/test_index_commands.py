"""ctx status, init and doctor."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from research.store.files.lock import write_lock
from research.store.files.paths import IndexPaths


def test_status_counts(call, filled: Path) -> None:
    document = call("status", "--json", "--index", str(filled)).document
    assert document["schema"] == "ctx.status/1"
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


def test_a_note_left_by_a_killed_process_does_not_count(call, copied: Path) -> None:
    (copied / "write.pid").write_text("99999999")
    assert call("status", "--json", "--index", str(copied)).document["writer_pid"] is None


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
    assert chosen() == (str(tmp_path / "mine"), f"set in {config}")
    (project / "ctx.toml").write_text("index = 'there'")
    assert chosen() == (str(project / "there"), f"set in {project / 'ctx.toml'}")
    (project / "ctx.toml").write_text("max_tokens = 5")
    assert chosen() == (str(tmp_path / "mine"), f"set in {config}")
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


def test_doctor_sees_what_is_wrong(call, copied: Path) -> None:
    shutil.rmtree(copied / "chroma")
    copied.chmod(0o755)
    found = severities(call("doctor", "--json", "--index", str(copied)).document)
    assert found["collections"] == "warn"
    assert found["folder"] == "warn"


def test_doctor_of_a_torn_catalog_fails_with_a_remedy(call, copied: Path) -> None:
    (copied / "catalog.sqlite3").write_bytes(b"no database at all" * 500)
    ran = call("doctor", "--index", str(copied))
    assert ran.code == 1
    line = next(line for line in ran.out.splitlines() if line.startswith("fail\tcatalog"))
    assert "not a database" in line
    assert "move the folder away" in line


def test_doctor_of_damaged_parts(call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.encoders.minilm.files.verify_files", lambda: ["model.bin is missing"])
    monkeypatch.setattr("cli.checks._PACKAGES", ("typer", "no-such-package"))
    ran = call("doctor", "--json", "--index", str(tmp_path))
    assert ran.code == 1
    found = severities(ran.document)
    assert (found["encoder"], found["packages"], found["index"]) == ("fail", "fail", "warn")


def test_doctor_on_a_terminal(on_terminal, filled: Path) -> None:
    ran = on_terminal(["doctor", "--index", str(filled)], env={"NO_COLOR": "1"})
    assert ran.code == 0
    assert "→ ctx remove DOC" in ran.out


def test_doctor_tells_what_is_unfinished_and_what_lags(call, words_only: Path, copied: Path) -> None:
    found = severities(call("doctor", "--json", "--index", str(words_only)).document)
    assert (found["unfinished"], found["collections"]) == ("warn", "ok")
    assert call("remove", "gardening.pdf", "--index", str(copied)).code == 0
    newest = max((copied / "chroma").glob("gen-*"))
    shutil.rmtree(newest)  # the one before it still has the page
    lagging = call("doctor", "--json", "--index", str(copied)).document
    assert severities(lagging)["collections"] == "warn"
    assert any("too many" in check["message"] for check in lagging["checks"])


@pytest.mark.parametrize("args", [["status"], ["ask", "q"], ["list"], ["doctor"], ["ingest", "."]])
def test_a_file_is_no_index(call, tmp_path: Path, args: list[str]) -> None:
    (tmp_path / "file").write_text("")
    ran = call(*args, "--index", str(tmp_path / "file"))
    assert ran.code == 2
    assert "is a file, not an index folder" in ran.err
