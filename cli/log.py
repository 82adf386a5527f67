"""Where the log goes: a file that somebody named, and with --debug the warnings to stderr. Otherwise nowhere."""

from __future__ import annotations

import logging
import os
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cli.call import LogLevel
from cli.output import say
from research.errors import CtxError, ModelError, NothingFoundError, UsageError
from research.observe import NAME, frames_of, full_text, in_full, logger_of
from research.text import one_line

LOG_FILE, LOG_LEVEL = "CTX_LOG", "CTX_LOG_LEVEL"

_CLI = "cli"
_PRIVATE = 0o600
_LAYOUT = "%(asctime)s %(levelname)s %(name)s[%(process)d]: %(message)s"
# Their messages repeat what was typed or sent, perhaps a question.
_QUOTING = (UsageError, NothingFoundError, ModelError)


class Log:
    """What the command line itself has to say to the log of one call. `file` is None if only stderr listens."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self._logger = logger_of(_CLI)
        self._begun = time.monotonic()

    def begins(self, command: str) -> None:
        from research import __version__

        self._logger.info("ctx %s begins: %s", __version__, command)

    def ends(self, code: int) -> None:
        self._logger.info("ends: exit code %d, %.2f s", code, time.monotonic() - self._begun)

    def fails(self, error: CtxError) -> None:
        """An error that the user is told in a sentence."""
        kind, told = type(error).__name__, "" if isinstance(error, _QUOTING) else f": {error.message}"
        self._logger.error("%s%s", kind, told, extra=in_full(f"{kind}: {error.message}"))

    def unexpected(self, error: BaseException) -> None:
        """One that nobody foresaw, with its traceback."""
        self._logger.error("unexpected error", exc_info=error)


@contextmanager
def started(options: Sequence[str], environment: Mapping[str, str]) -> Iterator[Log]:
    """The log that the words of a command line and the environment ask for, for the length of one call."""
    debug, named = "--debug" in options, _value("--log-file", options) or environment.get(LOG_FILE)
    level = _level(options, environment)
    handlers: list[logging.Handler] = [_Talk()] if debug else []
    file = Path(named).expanduser().absolute() if named else None
    if file is not None:
        handlers.append(_File(file, level))
    elif not debug and _value("--log-level", options):
        raise UsageError("--log-level says how much is logged, and not where", hint="add --log-file FILE")
    logger, before = logging.getLogger(NAME), logging.getLogger(NAME).level
    for handler in handlers:
        logger.addHandler(handler)
    logger.setLevel(min([handler.level for handler in handlers], default=before))
    try:
        yield Log(file)
    finally:
        logger.setLevel(before)
        for handler in handlers:
            logger.removeHandler(handler)
            handler.close()


def _value(option: str, words: Sequence[str]) -> str:
    """The last value of an option. Read from the words themselves, because the log is there before they are parsed;
    what is wrong with them the parser tells."""
    found = ""
    for word, after in zip(words, [*words[1:], ""], strict=True):
        if word == option:
            found = after
        elif word.startswith(f"{option}="):
            found = word.removeprefix(f"{option}=")
    return found


def _level(options: Sequence[str], environment: Mapping[str, str]) -> int:
    choices = [level.value for level in LogLevel]
    given = _value("--log-level", options)
    variable = environment.get(LOG_LEVEL, "")
    if variable and variable.lower() not in choices:
        raise UsageError(f"{LOG_LEVEL}: cannot be {variable!r}", hint="choose one of: " + ", ".join(choices))
    name = given if given in choices else variable.lower() or LogLevel.info.value
    return int(logging.getLevelName(name.upper()))


class _Talk(logging.Handler):
    """stderr, line by line, so that nothing a log quotes of a document reaches the terminal as it is."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(_Words("ctx: log: %(message)s", full=True))
        # What the command line itself logs it has told already.
        self.addFilter(lambda record: record.name != f"{NAME}.{_CLI}")

    def emit(self, record: logging.LogRecord) -> None:
        for line in self.format(record).splitlines():
            say(line)


class _File(logging.Handler):
    """A file that only its owner may read, added to by one write a record, so that several processes may share it. A
    full disk ends the log, not the command."""

    def __init__(self, path: Path, level: int) -> None:
        super().__init__(level)
        self.setFormatter(_Words(_LAYOUT, full=level <= logging.DEBUG))
        self._path = path
        self._descriptor: int | None = _opened(path)

    def emit(self, record: logging.LogRecord) -> None:
        if self._descriptor is None:
            return
        try:
            os.write(self._descriptor, f"{self.format(record)}\n".encode("utf-8", "backslashreplace"))
        except OSError as error:
            self._end()
            say(f"ctx: note: the log {self._path} cannot be written ({error.strerror}); ctx goes on without it")

    def close(self) -> None:
        self._end()
        super().close()

    def _end(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class _Words(logging.Formatter):
    """Records with the words that may quote a document or a question, or without them. One record is one line; what
    belongs to it stands indented below, so that no name of a file can feign a record."""

    def __init__(self, layout: str, *, full: bool) -> None:
        super().__init__(layout)
        self._full = full

    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # what another handler made of the traceback
        first, *rest = super().format(record).splitlines()
        return "\n".join([one_line(first), *(f"    {one_line(line)}" for line in rest)])

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  its name in logging
        if self._full:
            record.message = full_text(record)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802  likewise
        return super().formatException(ei) if self._full else frames_of(ei[1])

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802  likewise
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def _opened(path: Path) -> int:
    # Not waiting for the other end of a pipe, and not through a link that somebody laid.
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, _PRIVATE)
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        why = "it is no file"
    except OSError as error:
        why = "it is a link" if path.is_symlink() else error.strerror or str(error)
    hint = "name a file in a folder of yours: --log-file ctx.log"
    raise UsageError(f"the log {path} cannot be opened: {why}", hint=hint)
