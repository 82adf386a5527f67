"""ctx --version, help and what the shell offers: there when asked for, silent otherwise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cli.app import load_command
from cli.call import complete_document, complete_tag
from research import __version__
from tests.conftest import write_pdf
from tests.in_process import Ran, run_in_process

NAMES = [
    "plain.pdf",
    "plain too.pdf",
    "plan (old) & new.pdf",
    "年度報告.pdf",
    "-rf.pdf",
    "it's.pdf",
    "$(touch owned).pdf",
    "`id`.pdf",
    'quo"te.pdf',
    "new\nline.pdf",
    "tab\there.pdf",
    "red\x1b[31m.pdf",
]
OFFERED = ["plain too.pdf", "plain.pdf", "plan (old) & new.pdf", "年度報告.pdf"]


@pytest.mark.parametrize("args", [["-V"], ["--version"], ["-V", "ask"], ["--quiet", "-V"]])
def test_the_version(call: Callable[..., Ran], args: list[str]) -> None:
    ran = call(*args)
    assert (ran.code, ran.out) == (0, f"ctx {__version__}\n")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("query", "ctx ask"), ("FIND", "ctx search"), ("ls", "ctx list"), ("opne", "ctx open"), ("toc", "ctx show")],
)
def test_a_command_of_another_tool_is_understood(call: Callable[..., Ran], typed: str, meant: str) -> None:
    ran = call(typed, "x")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(f"hint: did you mean: {meant}\n")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("completion")
    for number, name in enumerate(NAMES):
        write_pdf(root / "docs" / name, [f"Document {number}"])
    at = ("--index", str(root / "index"))
    assert run_in_process("ingest", str(root / "docs"), "--no-images", *at).code == 0
    assert run_in_process("tag", "add", "plain.pdf", "tax", "2025", *at).code == 0
    return root / "index"


def context(index: Path, *, above: bool = False) -> object:
    """What Typer hands over: the options before or after the command's name."""
    group = load_command("show").make_context("ctx", ["--", "x", "1"], resilient_parsing=True)
    inner = load_command("show").make_context("show", ["--", "x", "1"], parent=group, resilient_parsing=True)
    if above:
        group.params["index"] = str(index)
    else:
        inner.params["index"] = str(index)
    return inner


@pytest.mark.slow
@pytest.mark.parametrize("above", [False, True])
def test_names_that_a_shell_could_misread_are_not_offered(index: Path, above: bool) -> None:
    here = context(index, above=above)
    assert complete_document(here, "") == OFFERED
    assert complete_document(here, "plain") == OFFERED[:2]
    assert complete_document(here, "zzz") == []
    assert complete_tag(here, "") == ["2025", "tax"]


def test_bash_takes_a_word_as_it_is_given(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_CTX_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "ctx\nshow\npl")
    assert [str(word) for word in complete_document(context(index), "plan")] == ["plan\\ \\(old\\)\\ \\&\\ new.pdf"]
    monkeypatch.setenv("COMP_WORDS", "ctx\nshow\n'pl")
    assert complete_document(context(index), "plan") == ["plan (old) & new.pdf"], "in quotes it needs no more"


def test_no_index_or_a_damaged_one_is_no_word(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert complete_document(context(tmp_path / "none"), "") == []
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "catalog.sqlite3").write_bytes(b"no database" * 999)
    assert complete_document(context(tmp_path / "bad"), "") == []
    assert capsys.readouterr() == ("", "")


def test_in_fish(call: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, index: Path) -> None:
    monkeypatch.setenv("_CTX_COMPLETE", "complete_fish")
    monkeypatch.setenv("CTX_INDEX", str(index))
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "ctx open plan")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    ran = call()
    assert (ran.out, ran.err) == ("plan (old) & new.pdf\n", "")
    assert not Path("owned").exists()


def test_a_question_typed_at_a_terminal_is_waited_for_with_a_word(
    spawn_on_terminal: Callable[..., Ran], filled: Path
) -> None:
    ran = spawn_on_terminal(["ask", "-", "--json", "--mode", "lexical", "--index", str(filled)], typed=b"housing\n\x04")
    assert ran.code == 0
    assert "ctx: type the question, then Ctrl-D" in ran.out
    assert '"query": "housing"' in ran.out


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        (
            "https://arxiv.org//pdf/2401.18059?download=1&x=y#a",
            "download it first: curl -Lo 2401.18059.pdf 'https://arxiv.org//pdf/2401.18059?download=1&x=y#a'; then: ctx"
            " ingest 2401.18059.pdf",
        ),
        ("HTTP://host", "download it first: curl -Lo host.pdf HTTP://host; then: ctx ingest host.pdf"),
        ("s3://bucket/", "download it first: curl -Lo bucket.pdf s3://bucket/; then: ctx ingest bucket.pdf"),
        ("https://", "download it first: curl -Lo document.pdf https://; then: ctx ingest document.pdf"),
        ("file:///docs/a%20b.pdf#page=3", "name the file: ctx ingest '/docs/a b.pdf'"),
    ],
)
def test_an_address_is_no_file_and_stays_as_typed(call: Callable[..., Ran], address: str, hint: str) -> None:
    ran = call("ingest", address)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"ctx: error: {address} is an address; ctx reads files\nhint: {hint}\n"


@pytest.mark.slow
def test_a_folder_may_be_called_like_an_address(call: Callable[..., Ran], tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_pdf(Path("https://host/a.pdf"), ["The walrus has tusks"])
    ran = call("ingest", "https://host", "--no-images", "--index", "index")
    assert (ran.code, ran.out.splitlines()[0]) == (0, "added 1")
