"""What the machine says when an index cannot be written, in words and with the next step."""

from __future__ import annotations

import errno
import sqlite3

from research.errors import IndexUnusableError

# A quota and a limit on file sizes feel like a full disk and are mended like one.
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}
_GONE = {errno.ENOENT, errno.ENOTDIR, errno.ESTALE}

FREE_SPACE = "free some space and run the same command again; what was reported as added is kept"
MAKE_WRITABLE = "make the folder writable, or name another with --index DIR"
RUN_AGAIN = "run the same command again; it reads what is missing"
DAMAGED = (
    "bring back a backup (ctx restore FILE --force), or move the folder away and ingest again;"
    " your documents are untouched"
)
CHECK = "check it with: ctx doctor"
MEND = "mend it with: ctx doctor --fix"


def is_full(error: OSError) -> bool:
    return error.errno in _FULL


def unusable(what: str, error: OSError) -> IndexUnusableError:
    """`what` failed: "cannot lock the index"."""
    hint = RUN_AGAIN if error.errno in _GONE else next_step(error) or CHECK
    return IndexUnusableError(f"{what}: {error.strerror or error}", hint=hint)


def next_step(error: OSError) -> str:
    """What to do about an error that the system explains by itself; empty for others."""
    if is_full(error):
        return FREE_SPACE
    return MAKE_WRITABLE if error.errno in _FORBIDDEN else ""


def is_machine_trouble(error: sqlite3.Error) -> bool:
    """Whether SQLite failed for want of space, rights or a sound disk, and not for what is in the file."""
    return any(sign in str(error) for sign in ("full", "disk I/O", "readonly", "unable to open"))


def unusable_catalog(what: str, error: sqlite3.Error) -> IndexUnusableError:
    """The same for what SQLite says, which has error texts where the system has numbers."""
    text = str(error)
    hint = CHECK
    if "full" in text or "disk I/O" in text:
        hint = FREE_SPACE if "full" in text else "see that the disk has space and works, then run the command again"
    elif "readonly" in text or "unable to open" in text:
        hint = MAKE_WRITABLE
    elif "not a database" in text or "malformed" in text:
        hint = DAMAGED
    return IndexUnusableError(f"{what}: {text}", hint=hint)
