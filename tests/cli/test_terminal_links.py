"""Which terminals are given links, and that no name can end or forge one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.layout import has_links, knows_links, link, plain
from research.models import page_link
from tests.in_process import Ran


@pytest.mark.parametrize(
    ("environment", "known"),
    [
        ({"TERM": "xterm-256color"}, True),
        ({"TERM": "tmux-256color"}, True),
        ({"TERM": "xterm", "VTE_VERSION": "6003"}, True),
        ({"TERM": "xterm", "VTE_VERSION": "4801"}, False),
        ({"TERM": "xterm", "VTE_VERSION": "new"}, True),
        ({"TERM": "xterm", "INSIDE_EMACS": "29"}, False),
        ({"TERM": "linux"}, False),
        ({"TERM": "dumb"}, False),
        ({"TERM": ""}, False),
        ({}, False),
    ],
)
def test_terminals_that_would_show_the_escapes_get_none(environment: dict[str, str], known: bool) -> None:
    assert knows_links(environment) is known


def test_never_in_a_pipe_or_where_they_are_switched_off() -> None:
    assert not has_links("on", {"TERM": "xterm"})
    assert not has_links("off")


@given(st.text(st.characters(codec="utf-8"), min_size=1))
def test_a_link_is_plain_ascii_whatever_the_file_is_called(name: str) -> None:
    uri = page_link(f"/docs/{name}", 3)
    assert uri.startswith("file:///")
    assert uri.endswith("#page=3")
    assert uri.isascii()
    assert uri.isprintable()
    assert not set(uri) & set("\\;\"'<> ")


@pytest.mark.parametrize("uri", ["", "file:///a\x1b\\evil", "file:///a\x07", "file:///ä", "file:///a\nb"])
def test_what_could_end_the_escape_is_no_link(uri: str) -> None:
    text = link(plain("a.pdf"), uri, links=True)
    assert "\x1b" not in text.plain
    assert all(getattr(span.style, "link", None) in (None, "") for span in text.spans)


def test_on_a_terminal(on_terminal: Callable[..., Ran], filled: Path) -> None:
    args = ["ask", "zebra housing", "--mode", "lexical", "--index", str(filled)]
    shown = on_terminal(args).out
    assert "file:///gone/crisis.pdf#page=2\x1b\\" in shown
    assert "file:///gone/evil%0A%5Bbold%5Dx%5Bb%5D%1B%5B31m%E2%80%AE--json.pdf#page=1\x1b\\" in shown
    assert "\x1b]8;" not in on_terminal(args, env={"TERM": "linux"}).out
    assert "\x1b]8;" in on_terminal(args, env={"CTX_LINKS": "on", "TERM": "linux"}).out
