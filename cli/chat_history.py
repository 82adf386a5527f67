"""What was typed in a conversation, for the arrow keys: one small file a session in the user's state folder.

Only its owner can read it, and it goes with its session. Where it cannot be written nothing is remembered.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from research.folders import user_state

_MOST_LINES = 1_000
_MOST_BYTES = 1 << 20


def load_history(index: Path, session: str) -> list[str]:
    """Oldest first."""
    try:
        with _opened(_file(index, session), os.O_RDONLY) as descriptor:
            content = os.read(descriptor, _MOST_BYTES)
    except OSError:
        return []
    return [line for line in content.decode("utf-8", "replace").splitlines() if line][-_MOST_LINES:]


def add_history(index: Path, session: str, line: str) -> None:
    file = _file(index, session)
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
        _file(index, session).unlink()


class _opened:  # noqa: N801  reads as what it does
    """A file of ours by its number; a link in its place is not followed."""

    def __init__(self, file: Path, flags: int) -> None:
        self._descriptor = os.open(file, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)

    def __enter__(self) -> int:
        return self._descriptor

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


def _file(index: Path, session: str) -> Path:
    """By a hash of both: a session's name may hold anything, and says what somebody works on."""
    from hashlib import sha256

    key = os.fsencode(os.path.realpath(index)) + b"\0" + session.encode("utf-8", "surrogatepass")
    return user_state() / "chat" / f"{sha256(key).hexdigest()[:24]}.history"
