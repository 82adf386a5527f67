"""Source code at the command line: in, again, listed, asked for, out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.in_process import Ran, run_in_process


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("code")
    (root / "src").mkdir()
    (root / "src/dates.py").write_text('def parse_http_date(value):\n    """When."""\n    return to_time(value)\n')
    (root / "src/evil\x1b[2J.py").write_text("def after(: pass\ndef fine(): return 1\n")
    (root / "src/notes.md").write_text("# notes")
    return root


def ctx(tree: Path, *args: str) -> Ran:
    return run_in_process(*args, "--index", str(tree / "index"), cwd=tree)


def test_in_listed_asked_and_out(tree: Path) -> None:
    first = ctx(tree, "ingest", "src", "--code")
    assert first.code == 0, first.err
    assert first.out.startswith("added 2\n")
    assert "pieces of code" in first.out
    assert "passed over 1: .md 1" in first.err
    assert "1 file with syntax errors; the rest of each is taken" in first.err
    assert "\x1b[2J" not in first.out + first.err

    again = ctx(tree, "ingest", "src", "--code", "--json")
    assert (again.document["unchanged"], again.document["code"]["units"]) == (2, 0)

    listed = ctx(tree, "list", "--json").document
    assert listed["code"][0]["root"] == str(tree / "src")
    assert "pieces of code from 2 files" in ctx(tree, "list").err
    assert ctx(tree, "status", "--json").document["items"]["code"] == listed["code"][0]["units"]
    assert "\ncode" in ctx(tree, "status").out

    asked = ctx(tree, "context", "parse the date of a header", "--types", "code", "--json").document
    assert asked["items"][0]["metadata"]["qualified_name"] == "parse_http_date"

    (tree / "src/dates.py").unlink()
    pruned = ctx(tree, "ingest", "src", "--code", "--prune")
    assert "removed 1" in pruned.out
    gone = ctx(tree, "remove", "src", "--code", "--json").document
    assert [(each["path"], each["files"]) for each in gone["removed_code"]] == [(str(tree / "src"), 1)]
    nothing = ctx(tree, "remove", "src", "--code")
    assert nothing.code == 3
    assert "no code of these paths" in nothing.err


def test_a_folder_of_papers_stays_one_of_papers(tree: Path, tmp_path: Path) -> None:
    ran = run_in_process("ingest", str(tree / "src"), "--index", str(tmp_path / "index"))
    assert ran.code == 3
    assert "no PDF files" in ran.err


def test_without_the_extra(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tree_sitter", None)
    ran = ctx(tree, "ingest", "src", "--code")
    assert ran.code == 1
    assert "pip install 'ctx-research[code]'" in ran.err
