"""Which pages the last answer or search cited, so that `ctx open 2` knows what 2 is.

One small file for an index, in the user's state folder because an index may be shared or read-only. It holds the names
of pages (`page:<doc>#7`), by terminal, and neither questions nor text; only its owner can read it. What runs without a
terminal (a job, an agent) leaves none: nobody will type a number after it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from research.folders import user_state
from research.models import Ref

_TERMINALS = 8  # whose last answers are kept


def remember(index: Path, refs: Sequence[str]) -> None:
    """Keep what citations mean. Where it cannot be written, `ctx open N` will say that there is no answer."""
    here = _terminal()
    if not here:
        return
    import json

    file = _file(index)
    answers = [answer for answer in _read(file) if answer[0] != here][: _TERMINALS - 1]
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}")
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as written:
            json.dump([[here, list(refs)], *answers], written)
        new.replace(file)


def remembered(index: Path) -> list[Ref]:
    """The pages of the last answer on this terminal, else of the last one anywhere; empty if there is none."""
    answers = _read(_file(index))
    here = _terminal()
    refs = next((refs for terminal, refs in answers if terminal == here), answers[0][1] if answers else [])
    try:
        pages = [Ref.parse(ref) for ref in refs]
    except ValueError:
        return []
    return pages if all(page.kind != "page" or page.part.isdecimal() for page in pages) else []


def _file(index: Path) -> Path:
    from hashlib import sha256

    name = sha256(os.fsencode(os.path.realpath(index))).hexdigest()[:16]
    return user_state() / "answers" / f"{name}.json"


def _read(file: Path) -> list[tuple[str, list[str]]]:
    import json

    try:
        found = json.loads(file.read_text(encoding="utf-8"))
        return [(str(terminal), [str(ref) for ref in refs]) for terminal, refs in found]
    except (OSError, ValueError, TypeError, RecursionError):  # none, or not as we wrote it: nothing is remembered
        return []


def _terminal() -> str:
    """The terminal's device and whose it is now, for devices are given anew; empty without one."""
    for stream in (sys.stderr, sys.stdin, sys.stdout):
        with suppress(OSError, ValueError, AttributeError):
            return f"{os.ttyname(stream.fileno())} {os.getsid(0)}"
    return ""
