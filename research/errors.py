"""Every error a user can meet, each with its exit code and the next thing to do.

    CtxError                 1  something failed
    ├── UsageError           2  the call itself is wrong
    │   ├── TurnTooLongError 2  a turn's own words are more than its budget
    │   ├── PackageRequestError 2  a context package cannot be asked for like this
    │   └── ContextAssemblyError 2  context of several sources cannot be assembled as it is asked for
    │       └── InvalidContextTypeError 2  a type of context that there is not
    ├── NothingFoundError    3  nothing to show: an empty index, no match, no such document
    ├── SomeFilesFailedError 4  the run went through, some files did not
    ├── BusyError            1  another process is writing the index
    ├── UntrustedError       1  something was found that is not the user's own, and was not used
    ├── IndexUnusableError   1  the index cannot be opened, read or written
    │   ├── NewerIndexError  1  it was written by a newer ctx
    │   └── OlderIndexError  1  it was written by an older ctx
    ├── EncoderUnavailable   1  a model cannot run here
    │   └── EncoderNotAllowed 1  an index asks for one that the user has not allowed
    ├── SomaClientError      1  a memory service does not answer as it should; turns are built without it
    ├── DocumentError        1  one file cannot be read; never stops a run
    ├── OcrError             1  one image cannot be read; never stops a document
    ├── RedactionError       1  a text could not be made safe, and does not leave
    ├── PolicyError          1  a policy cannot be used, and nothing is released
    ├── ModelError           1  a language model wrote no answer, or not all of it; quotes and sources need none
    │   ├── ModelUnavailableError 1  nobody there, or a package is missing
    │   ├── ModelTimeoutError 1  it says nothing, or too slowly
    │   ├── ModelRefusedError 1  the key, the model's name or the request is not accepted
    │   ├── ModelBusyError   1  too many requests, or the server is in trouble
    │   ├── ModelProtocolError 1  what came is no answer of a model, or half of one
    │   └── ContextTooLongError 1  the prompt is longer than the model takes
    ├── ProblemError         1  a server refuses a request in words of its own: too many, too late, not allowed
    └── StoppedError       130  the user ended it

Only `cli` turns these into words and exit codes; everything below raises them. What the machine says (a full disk, no
right to write) is put into words here, with the next step.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

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


class CtxError(Exception):
    """Base of all errors with a message for the user. `hint` is the next command to type."""

    exit_code = 1
    trace_id = ""  # of the work in which it was raised, where that has one

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(CtxError):
    exit_code = 2


class TurnTooLongError(UsageError):
    """System prompt and message alone are more than the budget: `needed` tokens, where `limit` are allowed."""

    def __init__(self, message: str, *, needed: int = 0, limit: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.needed = needed
        self.limit = limit


class PackageRequestError(UsageError):
    """A request for a context package that is none: an unknown field, a budget that cannot be, too many refs."""


class ContextAssemblyError(UsageError):
    """Context of several sources cannot be assembled as it is asked for. A source that fails is no such error: the
    others answer."""


class InvalidContextTypeError(ContextAssemblyError):
    """A type of context that there is not; raised before anything is searched."""


class NothingFoundError(CtxError):
    exit_code = 3


class SomeFilesFailedError(CtxError):
    exit_code = 4


class BusyError(CtxError):
    """Another process holds the index's write lock; `pid` is its process id where known."""

    def __init__(self, message: str, *, pid: int | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.pid = pid


class UntrustedError(CtxError):
    """An index or a settings file was found that somebody else owns or may write."""


class IndexUnusableError(CtxError):
    """The index folder is damaged, not writable, or from a newer version of ctx."""


class NewerIndexError(IndexUnusableError):
    @classmethod
    def of(cls, what: str, found: int, known: int) -> NewerIndexError:
        return cls(
            f"{what} was written by a newer ctx (schema {found}; this ctx knows {known})",
            hint="upgrade ctx: pip install --upgrade ctx-research",
        )


class OlderIndexError(IndexUnusableError):
    @classmethod
    def of(cls, what: str) -> OlderIndexError:
        return cls(
            f"{what} was written by an older ctx",
            hint="make it anew with: ctx ingest PATH --index NEW_FOLDER; its memories come along with"
            " ctx recall --export FILE by the older ctx, and ctx remember --import FILE by this one",
        )


class EncoderUnavailable(CtxError):  # noqa: N818 - a state of the machine more than a failure
    """An encoder cannot run here: a package, its weights, its device or the user's permission is missing, or its files
    would not be safe to load. `hint` says how to get it."""


class EncoderNotAllowed(EncoderUnavailable):
    """An index asks for a model that the user has not allowed."""


class SomaClientError(CtxError):
    """A memory service did not do what it was asked for. `code` is what callers tell apart: "unreachable", "busy",
    "timeout", "refused", "nonsense", "open" (it is not asked for a while, because it failed before) or "failed";
    `wait` how many seconds it asks for. `counts`: it says something about the service, and not about the request.
    `detail` are the service's own words, which may repeat what it was sent; the message never holds them.
    Not `sent`: nobody was there, so nothing can have been done twice."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "failed",
        hint: str = "",
        wait: float = 0.0,
        counts: bool = True,
        detail: str = "",
        sent: bool = True,
    ) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.wait = wait
        self.counts = counts
        self.detail = detail
        self.sent = sent


class DocumentError(CtxError):
    """One document cannot be ingested. `code` is a stable word for scripts ("encrypted", "damaged", …)."""

    def __init__(self, message: str, *, code: str, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


OCR_FAILED = "ocr_failed"


class OcrError(CtxError):
    """One image could not be read. It costs that page or picture, never the document. `code` as in store.failures."""

    def __init__(self, message: str, *, code: str = OCR_FAILED, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code


class RedactionError(CtxError):
    """A text could not be made safe and was dropped. Nothing of it is in here. `reason` is a stable word: "error",
    "timeout", or "unavailable" for a redactor that cannot be loaded."""

    def __init__(self, message: str, *, reason: str = "error", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


class PolicyError(CtxError):
    """A policy cannot be used: it does not parse, cannot be read or trusted, or its engine is missing or fails. Nothing
    is released then."""


class ModelError(CtxError):
    """A model's answer failed. `code` is a stable word for scripts, `retry_after` the seconds after which the same may
    be tried again, None where that would not help. The message may quote the server's own words, and those may quote
    what it was sent; a key is never among them."""

    code = "failed"
    retry_after: float | None = None


class ModelUnavailableError(ModelError):
    code = "unavailable"


class ModelTimeoutError(ModelError):
    code = "timeout"


class ModelRefusedError(ModelError):
    code = "refused"


class ModelBusyError(ModelError):
    code = "busy"


class ModelProtocolError(ModelError):
    code = "protocol"


class ContextTooLongError(ModelError):
    """`window` is how many tokens the model takes, `prompt_tokens` how many it counted; 0 where it does not say."""

    code = "context_too_long"

    def __init__(self, message: str, *, window: int = 0, prompt_tokens: int = 0, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.window = window
        self.prompt_tokens = prompt_tokens


class ProblemError(CtxError):
    """A request that a server does not take. `problem` is the document that it answers with (`research.service`)."""

    def __init__(self, message: str, *, hint: str = "", problem: object = None) -> None:
        super().__init__(message, hint=hint)
        self.problem = problem


class StoppedError(CtxError):
    exit_code = 130


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
