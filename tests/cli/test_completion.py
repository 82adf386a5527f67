"""What the shell offers: names of documents and tags of the index that the command would use, and nothing it could
evaluate."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from research.records import Chunk, DocumentInfo, Page
from research.store import Catalog, FileStamp, IndexPaths
from tests.in_process import Ran

Call = Callable[..., Ran]
ODD = ["two words & more.pdf", "$(touch owned).pdf", "`touch owned`.pdf", "it's.pdf", 'a"b.pdf', "x;touch owned.pdf"]


@pytest.fixture
def odd(copied: Path) -> Path:
    with Catalog(IndexPaths(copied), writable=True) as catalog:
        for number, name in enumerate(ODD, start=1):
            doc_id = f"{number:016x}"
            info = DocumentInfo(doc_id, name, "pdf", "", 1, "", f"/gone/{name}", 1, doc_id * 4)
            pages = [(Page(1, "text"), [Chunk(1, 0, "text", "", 1, (0, 0, 1, 1))])]
            catalog.documents.add(info, FileStamp(f"/gone/{name}", 1, 1, 1, 1), pages, reader_version=1)
    return copied


def in_bash(index: Path, folder: Path, *words: str) -> list[str]:
    """What bash itself makes of our answer, by the script that `ctx --install-completion` installs."""
    (folder / "bin").mkdir(exist_ok=True)
    ctx = folder / "bin" / "ctx"
    ctx.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m cli.main "$@"\n')
    ctx.chmod(0o755)
    script = f"""
        source <(ctx --show-completion bash)
        COMP_WORDS=({" ".join(map(shlex.quote, ["ctx", *words]))}); COMP_CWORD={len(words)}
        _ctx_completion ctx
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    environment = {
        **os.environ,
        "CTX_INDEX": str(index),
        "PATH": os.pathsep.join([str(ctx.parent), os.environ["PATH"]]),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1",
    }
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, env=environment, cwd=folder, check=True
    )
    return done.stdout.splitlines()


@pytest.mark.slow
def test_bash_gets_words_that_it_cannot_evaluate(odd: Path, tmp_path: Path) -> None:
    assert in_bash(odd, tmp_path, "show", "cri") == ["crisis-annex.pdf", "crisis.pdf"]
    offered = in_bash(odd, tmp_path, "ask", "--doc", "")
    assert offered == [
        "crisis-annex.pdf", "crisis.pdf", "gardening.pdf", r"two\ words\ \&\ more.pdf", r"x\;touch\ owned.pdf",
    ]  # fmt: skip
    assert not (tmp_path / "owned").exists()


@pytest.fixture
def completed(call: Call, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """What bash is offered for these words."""

    def run(words: str) -> list[str]:
        monkeypatch.setenv("_CTX_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", f"ctx {words}")
        monkeypatch.setenv("COMP_CWORD", str(len(words.split())))
        ran = call()
        monkeypatch.delenv("_CTX_COMPLETE")
        assert (ran.code, ran.err) == (0, "")
        return ran.out.split()

    return run


def test_documents_and_tags(completed, call: Call, copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CTX_INDEX", str(copied))
    call("tag", "add", "gardening.pdf", "green")
    for words, offered in (
        ("show gar", ["gardening.pdf"]),
        ("open gar", ["gardening.pdf"]),
        ("remove crisis.", ["crisis.pdf"]),
        ("tag add gar", ["gardening.pdf"]),
        ("tag add gardening.pdf gr", ["green"]),
        ("search x --tag g", ["green"]),
        ("search x --not-doc crisis-", ["crisis-annex.pdf"]),
        ("ask --doc zzz", []),
        ("ask --mode t", ["text"]),
    ):
        assert completed(words) == offered, words


def test_the_index_that_was_named_is_looked_into(completed, filled: Path, tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "catalog.sqlite3").write_bytes(b"no database" * 999)
    for index, offered in ((filled, ["gardening.pdf"]), (tmp_path / "none", []), (tmp_path / "bad", [])):
        for words in (f"--index {index} show gar", f"show --index {index} gar"):
            assert completed(words) == offered, words


def test_in_fish(call: Call, monkeypatch: pytest.MonkeyPatch, odd: Path) -> None:
    monkeypatch.setenv("_CTX_COMPLETE", "complete_fish")
    monkeypatch.setenv("CTX_INDEX", str(odd))
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "ctx open two")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    ran = call()
    assert (ran.out, ran.err) == ("two words & more.pdf\n", "")
