"""What the shell offers for a document or a tag: their names, read from the index that the command would use.

Silent whatever happens: somebody is in the middle of typing. Names are other people's: those that hold quotes, dollars,
backslashes or anything that cannot be seen are not offered, because a shell may evaluate what it is given; nor are
those that begin with a dash, because ctx would take them for options.
"""

from __future__ import annotations

import os
import re
from typing import Any

from research.visible_text import one_line

_RISKY = re.compile(r"[\"'\\$`!]")
_TO_ESCAPE = re.compile(r"([^\w@%+=:,./-])")


class _Word(str):
    """A word as bash needs it. Typer would drop it, for it does not begin with what was typed: it is escaped."""

    __slots__ = ()

    def startswith(self, *_: Any) -> bool:
        return True


def complete_document(ctx: Any, incomplete: str) -> list[str]:
    return _offered(ctx, incomplete, "document")


def complete_tag(ctx: Any, incomplete: str) -> list[str]:
    return _offered(ctx, incomplete, "tag")


def _offered(ctx: Any, incomplete: str, kind: str) -> list[str]:
    try:
        names = sorted(set(_known(ctx, kind)))
    except Exception:  # noqa: BLE001  no index, a damaged one, wrong settings: the next command tells, not this
        return []
    fitting = [name for name in names if name.startswith(incomplete) and _harmless(name)]
    return [_Word(_TO_ESCAPE.sub(r"\\\1", name)) if _in_bare_bash() else name for name in fitting]


def _known(ctx: Any, kind: str) -> list[str]:
    from cli.options import Common, index_for

    above = ctx.parent.params.get("index") if ctx.parent is not None else None
    with index_for(Common(ctx.meta.get("ctx.index") or above, quiet=True)) as index:
        return [document.filename for document in index.documents()] if kind == "document" else list(index.all_tags())


def _harmless(name: str) -> bool:
    return one_line(name) == name and not name.startswith("-") and not _RISKY.search(name)


def _in_bare_bash() -> bool:
    """Bash takes a word as it is given; zsh and fish escape it, and so does a quote that is open."""
    if os.environ.get("_CTX_COMPLETE") != "complete_bash":
        return False
    words = os.environ.get("COMP_WORDS", "").split("\n")
    return not words[-1].startswith(("'", '"'))
