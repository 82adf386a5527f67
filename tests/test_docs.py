"""docs/commands.md is what the commands print."""

from __future__ import annotations

from tools.build_docs import PAGE, commands_page


def test_the_page_of_commands_is_current() -> None:
    assert PAGE.read_text("utf-8") == commands_page(), "make it anew: python -m tools.build_docs"
