"""The body of an upload, taken apart piece by piece and written to disk as it comes: memory holds one piece.

Starlette's own parser keeps parts in temporary files, in a folder that may be memory, to be copied then. This one
writes each file once, into the index, where a rename makes it an upload. What is wrong with a file is found out early
and told at the end: a client that is still sending hears no answer before.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from research.errors import ProblemError, is_full, next_step, unusable
from research.observe import logger_of
from research.service.options import Limits
from research.service.problems import Problem, refused
from research.service.upload_names import NAMELESS, safe_name
from research.store.files import uploads
from research.store.files.paths import IndexPaths
from research.store.files.uploads import Incoming, Upload

FIELD = b"files"
MEDIA_TYPE = "multipart/form-data"

_HEAD = 8192  # bytes in which a PDF says that it is one, as `ctx ingest` has it
_SIGN = b"%PDF"
_OTHER_FIELDS = 20
_HEADERS = 16  # of one part
_HEADER_BYTES = 16 * 1024


class Receiver:
    """Takes one body. `feed` and `finish` are called in threads, one after the other; `drop` at any time."""

    def __init__(self, paths: IndexPaths, content_type: str, limits: Limits) -> None:
        """Raises ProblemError for a content type that is no multipart form, or has no boundary."""
        self._paths = paths
        self._limits = limits
        self._parser = MultipartParser(
            _boundary(content_type),
            {
                "on_part_begin": self._on_part_begin,
                "on_header_field": self._on_header_field,
                "on_header_value": self._on_header_value,
                "on_header_end": self._on_header_end,
                "on_headers_finished": self._on_headers_finished,
                "on_part_data": self._on_part_data,
                "on_part_end": self._on_part_end,
                "on_end": self._on_end,
            },
        )
        # Its own limits, where it has some, are tighter than long names are; ours hold for every version of it.
        self._parser.max_header_count, self._parser.max_header_size = _HEADERS, _HEADER_BYTES
        self._parser.logger = logger_of("service")  # its own would print on stderr
        self._lock = threading.Lock()
        self._dropped = False
        self._problem: ProblemError | None = None
        self._whole = False
        self._bytes = 0
        self._parts = 0
        self._received: list[Incoming] = []
        self._header: tuple[bytearray, bytearray] = (bytearray(), bytearray())
        self._disposition = b""
        self._name: str | None = None  # of the file in work; None in any other part
        self._given = False  # whether its name was given
        self._head = bytearray()
        self._file: Incoming | None = None

    def feed(self, data: bytes) -> None:
        """The next piece. Raises ProblemError if there is no use in reading on; whatever else is wrong waits."""
        with self._lock:
            if self._dropped:
                return
            self._bytes += len(data)
            if self._bytes > self._limits.upload_bytes:
                raise too_large(self._limits)
            if self._problem is not None:  # the rest is read and forgotten
                return
            try:
                self._parser.write(data)
            except FormParserError as error:
                raise _malformed(str(error)) from None
            except OSError as error:
                self._fail(_trouble(error))

    def finish(self) -> list[Upload]:
        """The end of the body: its files are uploads from here on, all or none."""
        with self._lock:
            if self._dropped:
                return []
            if self._problem is not None:
                raise self._problem
            if not self._whole:
                raise _malformed("it ends before its last boundary")
            if not self._received:
                raise refused(
                    Problem(422, "There is no file in the request", hint="send PDFs as parts of the name `files`")
                )
            kept: list[Upload] = []
            try:
                while self._received:
                    kept.append(self._received.pop(0).keep())
            except OSError as error:
                discard(self._paths, kept)
                raise _trouble(error) from error
            return kept

    def drop(self) -> None:
        """Nothing is left of what has not become an upload."""
        with self._lock:
            self._dropped = True
            self._drop_files()

    def _drop_files(self) -> None:
        for incoming in [*self._received, *([self._file] if self._file is not None else [])]:
            incoming.drop()
        self._received, self._file = [], None

    def _on_part_begin(self) -> None:
        self._parts += 1
        if self._parts > self._limits.upload_files + _OTHER_FIELDS:
            raise _too_many(self._limits)
        self._disposition, self._name, self._given = b"", None, False
        self._header = (bytearray(), bytearray())
        self._head.clear()

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header[0].extend(data[start:end])

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header[1].extend(data[start:end])
        if len(self._header[1]) > _HEADER_BYTES:
            raise _malformed("a header is too long")

    def _on_header_end(self) -> None:
        name, value = self._header
        if name.lower() == b"content-disposition":
            self._disposition = bytes(value)
        self._header = (bytearray(), bytearray())

    def _on_headers_finished(self) -> None:
        _, options = parse_options_header(self._disposition)
        if options.get(b"name") == FIELD:
            given = options.get(b"filename", b"").decode("utf-8", "replace")
            self._given = bool(given)
            self._name = safe_name(given) if given else NAMELESS

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        if self._name is None or self._problem is not None:  # the piece that holds the trouble goes on
            return
        if self._file is not None:
            self._file.write(data[start:end])
            return
        self._head.extend(data[start:end])
        if _SIGN in self._head[:_HEAD]:
            if len(self._received) >= self._limits.upload_files:
                raise _too_many(self._limits)
            self._file = Incoming(self._paths, self._name)
            self._file.write(bytes(self._head))
            self._head.clear()
        elif len(self._head) >= _HEAD:
            self._fail(_no_pdf(self._name))

    def _on_part_end(self) -> None:
        if self._file is not None:
            self._received.append(self._file)
            self._file = None
        elif self._name is not None and (self._head or self._given):  # a form without a chosen file sends an empty part
            self._fail(_no_pdf(self._name))

    def _on_end(self) -> None:
        self._whole = True

    def _fail(self, problem: ProblemError) -> None:
        """The first thing that went wrong. A full disk is full of this very upload: room is made at once."""
        self._problem = self._problem or problem
        self._head.clear()
        self._drop_files()


def discard(paths: IndexPaths, kept: list[Upload]) -> None:
    """Take uploads back that nobody was told of. What was there before stays."""
    for upload in kept:
        if upload.fresh:
            uploads.remove(paths, upload.doc_id)


def too_large(limits: Limits) -> ProblemError:
    most = f"{limits.upload_bytes / (1 << 20):,.0f} MiB"
    return refused(
        Problem(
            413,
            "The upload is too large",
            f"a request may hold {most}",
            "send fewer files at once, or use on this machine: ctx ingest PATH",
            headers=CLOSE,
        )
    )


def gone() -> ProblemError:
    """Nobody hears it; but what there was of the upload has to end somehow."""
    return refused(Problem(400, "The client went away", headers=CLOSE))


CLOSE: Mapping[str, str] = {"Connection": "close"}
"""With an answer that comes before the end of a body: what follows on this connection is no request."""


def _boundary(content_type: str) -> bytes:
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if kind.strip() != MEDIA_TYPE.encode() or not 0 < len(boundary) <= 200:
        raise _malformed("its content type names no usable boundary")
    return boundary


def _malformed(why: str) -> ProblemError:
    return refused(
        Problem(
            400,
            "The upload cannot be read",
            f"the body is no whole multipart form: {why}",
            "send PDFs as multipart/form-data, in parts of the name `files`",
            headers=CLOSE,
        )
    )


def _too_many(limits: Limits) -> ProblemError:
    most = f"a request may hold {limits.upload_files} files"
    return refused(Problem(413, "Too many files at once", most, "send them in several requests", headers=CLOSE))


def _no_pdf(name: str) -> ProblemError:
    return refused(
        Problem(415, "A file is no PDF", f"{name} does not begin like one", "ctx reads PDFs; nothing was taken")
    )


def _trouble(error: OSError) -> ProblemError:
    if is_full(error):
        hint = "free some space and send it again; nothing of it was kept"
        return refused(Problem(507, "The disk is full", error.strerror or "", hint))
    found = unusable("the index cannot be written", error)
    return refused(Problem(503, "The upload cannot be kept", found.message, next_step(error) or found.hint))
