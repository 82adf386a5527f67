"""Every error a user can meet, each with its exit code and the next thing to do.

    CtxError                 1  something failed
    ├── UsageError           2  the call itself is wrong
    ├── NothingFoundError    3  nothing to show: an empty index, no match, no such document
    ├── SomeFilesFailedError 4  the run went through, some files did not
    ├── BusyError            1  another process is writing the index
    ├── UntrustedError       1  something was found that is not the user's own, and was not used
    ├── IndexUnusableError   1  the index cannot be opened, read or written
    │   └── NewerIndexError  1  it was written by a newer ctx
    ├── EncoderUnavailable   1  a model cannot run here
    │   └── EncoderNotAllowed 1  an index asks for one that the user has not allowed
    ├── DocumentError        1  one file cannot be read; never stops a run
    ├── OcrError             1  one image cannot be read; never stops a document
    └── StoppedError       130  the user ended it

Only `cli` turns these into words and exit codes; everything below raises them.
"""

from __future__ import annotations


class CtxError(Exception):
    """Base of all errors with a message for the user. `hint` is the next command to type."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(CtxError):
    exit_code = 2


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


class EncoderUnavailable(CtxError):  # noqa: N818 - a state of the machine more than a failure
    """An encoder cannot run here: a package, its weights, its device or the user's permission is missing, or its files
    would not be safe to load. `hint` says how to get it."""


class EncoderNotAllowed(EncoderUnavailable):
    """An index asks for a model that the user has not allowed."""


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


class StoppedError(CtxError):
    exit_code = 130
