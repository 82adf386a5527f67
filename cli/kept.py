"""Which pages the last answer or search cited, so that `ctx open 2` knows what 2 is.

One small file for an index, in the user's state folder because an index may be shared or read-only. It holds the names
of pages (`page:<doc>#7`), by terminal, and neither questions nor text; only its owner can read it. What runs without a
terminal (a job, an agent) leaves none: nobody will type a number after it.

What was typed in a conversation, for the arrow keys: one small file a session in the user's state folder.

Only its owner can read it, and it goes with its session. Where it cannot be written nothing is remembered.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from research.files import user_state
from research.models import Ref

_TERMINALS = 8  # whose last answers are kept


def remember(index: Path, refs: Sequence[str]) -> None:
    """Keep what citations mean. Where it cannot be written, `ctx open N` will say that there is no answer."""
    here = _terminal()
    if not here:
        return
    import json

    file = _answer_file(index)
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
    answers = _read(_answer_file(index))
    here = _terminal()
    refs = next((refs for terminal, refs in answers if terminal == here), answers[0][1] if answers else [])
    try:
        pages = [Ref.parse(ref) for ref in refs]
    except ValueError:
        return []
    return pages if all(page.kind != "page" or page.part.isdecimal() for page in pages) else []


def _answer_file(index: Path) -> Path:
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


_MOST_LINES = 1_000
_MOST_BYTES = 1 << 20


def load_history(index: Path, session: str) -> list[str]:
    """Oldest first."""
    try:
        with _opened(_session_file(index, session), os.O_RDONLY) as descriptor:
            content = os.read(descriptor, _MOST_BYTES)
    except OSError:
        return []
    return [line for line in content.decode("utf-8", "replace").splitlines() if line][-_MOST_LINES:]


def add_history(index: Path, session: str, line: str) -> None:
    file = _session_file(index, session)
    with suppress(OSError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lines, how = [line], os.O_APPEND
        if file.exists() and file.stat().st_size > _MOST_BYTES // 2:
            lines, how = [*load_history(index, session)[-_MOST_LINES // 2 :], line], os.O_TRUNC
        text = "".join(" ".join(each.split()) + "\n" for each in lines)
        with _opened(file, os.O_WRONLY | os.O_CREAT | how) as descriptor:
            os.write(descriptor, text.encode("utf-8", "replace"))


def forget_history(index: Path, session: str) -> None:
    with suppress(OSError):
        _session_file(index, session).unlink()


class _opened:  # noqa: N801  reads as what it does
    """A file of ours by its number; a link in its place is not followed."""

    def __init__(self, file: Path, flags: int) -> None:
        self._descriptor = os.open(file, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _session_file(index: Path, session: str) -> Path:
    """By a hash of both: a session's name may hold anything, and says what somebody works on."""
    from hashlib import sha256

    key = os.fsencode(os.path.realpath(index)) + b"\0" + session.encode("utf-8", "surrogatepass")
    return user_state() / "chat" / f"{sha256(key).hexdigest()[:24]}.history"
