"""ctx --version, commands and addresses that were mistyped, and a question that is waited for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from research import __version__
from tests.conftest import write_pdf
from tests.in_process import Ran


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
