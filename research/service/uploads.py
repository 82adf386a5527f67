"""Uploads on their way from a request to a document: received, kept on disk, ingested by a job, and settled.

What was accepted is never lost: it lies on disk, marked as waiting, before the client hears so, and the mark goes when
an ingest is through with it. A server that was stopped or killed in between finds it at its next start (`resume`).

The name of an uploaded file, made safe: it comes from anywhere and becomes a name on this disk.

The body of an upload, taken apart piece by piece and written to disk as it comes: memory holds one piece.

Starlette's own parser keeps parts in temporary files, in a folder that may be memory, to be copied then. This one
writes each file once, into the index, where a rename makes it an upload. What is wrong with a file is found out early
and told at the end: a client that is still sending hears no answer before.
"""

from __future__ import annotations

import asyncio
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect

from research.errors import CtxError, ProblemError, is_full, next_step, unusable
from research.observe import log_failure, logger_of
from research.service.jobs import Job, JobFile, Message, State
from research.service.limits import Limits
from research.service.problems import Problem, refused
from research.store import Catalog, Incoming, IndexPaths, Upload, get_document, uploads

if TYPE_CHECKING:
    from starlette.requests import Request

    from research.service.jobs import JobRunner


NAMELESS = "upload.pdf"

_SUFFIX = ".pdf"
_MOST_BYTES = 180  # of its stem; file systems take 255 bytes, and other names are made from it
_SEPARATORS = re.compile(r"[/\\]")
_FORBIDDEN = re.compile(r'[:*?"<>|]')  # not on every file system, and in the way on a command line
_BLANKS = re.compile(r"\s+")
# Control characters, what turns the direction of text or is not seen, halves of characters, no characters at all.
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?")


def safe_name(given: str) -> str:
    """A plain file name that ends in `.pdf`, as near to the given one as is safe."""
    name = _SEPARATORS.split(given)[-1]
    name = unicodedata.normalize("NFC", name.replace("\t", " "))
    name = "".join(char for char in name if unicodedata.category(char) not in _UNSEEN)
    name = _BLANKS.sub(" ", _FORBIDDEN.sub("_", name)).strip()
    stem = name[: -len(_SUFFIX)] if name.lower().endswith(_SUFFIX) else name
    # Not hidden, no option of a command, no blank or dot at the end, where some systems drop it.
    stem = stem.lstrip(".-~ ").rstrip(". ")
    stem = stem.encode()[:_MOST_BYTES].decode(errors="ignore").rstrip(". ")
    if not stem:
        return NAMELESS
    return f"_{stem}{_SUFFIX}" if _DEVICES.fullmatch(stem) else f"{stem}{_SUFFIX}"


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


T = TypeVar("T")

_PIECE = 256 * 1024  # bytes that are written at once
_AT_ONCE = 4  # uploads that are received; more share one disk and one line
_MOST_BEGINS = 5  # of ingests that did not come to any end
# Outcomes that say nothing against the file: it goes on waiting. `killed`: its reader was, perhaps for want of memory.
_NOT_ITS_FAULT = {"killed", "gone"}
# Outcomes that no other try will change. The sender has the file and is told; a copy would fill the disk for nothing.
_NO_DOCUMENT = {"not_a_pdf", "damaged", "encrypted", "empty", "no_pages"}

log = logger_of("service")


class Uploads:
    """The uploads of one index."""

    def __init__(self, paths: IndexPaths, limits: Limits | None = None) -> None:
        self._paths = paths
        self._limits = limits or Limits()
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="ctx-upload")
        self._receiving = 0
        self._lock = threading.Lock()
        self._in_jobs: Counter[str] = Counter()  # documents' ids: how many jobs will read or are reading them

    async def receive(self, request: Request) -> list[Upload]:
        """The files of a request, all of them or none. Raises ProblemError, and then nothing is left."""
        if self._receiving >= _AT_ONCE:
            raise refused(
                Problem(429, "Too many uploads at once", hint="try again in 5 seconds", headers={"Retry-After": "5"})
            )
        self._check_length(request)
        receiver = Receiver(self._paths, request.headers.get("content-type", ""), self._limits)
        self._receiving += 1
        try:
            async for piece in self._pieces(request):
                await self._in_thread(lambda piece=piece: receiver.feed(piece))  # type: ignore[misc]
            return await self._in_thread(receiver.finish)
        except ClientDisconnect:
            raise gone() from None
        finally:
            self._receiving -= 1
            receiver.drop()

    def submit(self, jobs: JobRunner, received: Sequence[Upload]) -> Job:
        """A job for what was received. If there is none to be had, nothing is left of it."""
        try:
            return jobs.submit(self._job(received), reserved=True)
        except ProblemError:
            self._leave(received)
            with self._lock:
                discard(self._paths, [each for each in received if not self._in_jobs[each.doc_id]])
            raise

    def resume(self, jobs: JobRunner) -> Job | None:
        """At the start: a job for what an earlier server accepted and did not finish; None if there is nothing. One
        that has been begun again and again without an end is given up, for it may be what ends every server."""
        try:
            uploads.sweep(self._paths)
            waiting = uploads.waiting_uploads(self._paths)
        except OSError as error:
            log_failure("service", "looking for uploads", error)
            return None
        hopeless = [upload for upload in waiting if uploads.begun(upload) >= _MOST_BEGINS]
        for upload in hopeless:
            log.error("an upload ended every ingest, and is given up: %s", upload.doc_id)
            uploads.fail(upload, "hopeless", f"{_MOST_BEGINS} ingests that began with it did not come to any end")
        left = [upload for upload in waiting if upload not in hopeless]
        return jobs.submit(self._job(left), reserved=True) if left else None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _job(self, received: Sequence[Upload]) -> Job:
        chosen = list({upload.doc_id: upload for upload in received}.values())
        with self._lock:
            self._in_jobs.update(upload.doc_id for upload in chosen)
        return Job(
            paths=tuple(upload.path for upload in chosen),
            files=tuple(JobFile(upload.name, upload.size, upload.doc_id) for upload in chosen),
            on_begin=lambda: self._begin(chosen),
            on_end=lambda job, state: self._end(chosen, job, state),
        )

    def _begin(self, chosen: Sequence[Upload]) -> None:
        for upload in chosen:
            uploads.note_begin(upload)

    def _end(self, chosen: Sequence[Upload], job: Job, state: State) -> None:
        """What was read no longer waits. What nobody can read is gone, and so is what a cancelled job had not come to;
        what failed otherwise is marked. After any other end the rest waits for the next start."""
        self._leave(chosen)
        for upload in chosen:
            outcome = job.outcomes.get(upload.doc_id)
            if not job.broken:
                uploads.note_end(upload)
            if outcome is not None and state in ("done", "cancelled"):
                self._settle(upload, outcome)
            elif state == "cancelled":
                self._forget(upload)

    def _settle(self, upload: Upload, outcome: Message) -> None:
        if outcome["result"] != "failed":
            uploads.settle(upload)
        elif outcome["code"] in _NO_DOCUMENT:
            self._forget(upload)
        elif outcome["code"] not in _NOT_ITS_FAULT:
            uploads.fail(upload, outcome["code"], outcome["reason"])

    def _forget(self, upload: Upload) -> None:
        with self._lock:
            if self._in_jobs[upload.doc_id]:  # it was sent twice, and the other job looks after it
                return
            if self._is_known(upload):
                uploads.settle(upload)
            else:
                uploads.remove(self._paths, upload.doc_id)

    def _is_known(self, upload: Upload) -> bool:
        try:
            with Catalog(self._paths) as catalog:
                return get_document(catalog, upload.doc_id) is not None
        except CtxError:  # there is no index yet
            return self._paths.exists

    def _leave(self, chosen: Sequence[Upload]) -> None:
        with self._lock:
            self._in_jobs.subtract({upload.doc_id for upload in chosen})
            self._in_jobs += Counter()  # without those that none reads any more

    def _check_length(self, request: Request) -> None:
        length = request.headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._limits.upload_bytes:
            raise too_large(self._limits)

    async def _pieces(self, request: Request) -> AsyncIterator[bytes]:
        """The body in pieces of some size. Raises ProblemError if it comes too slowly."""
        stream = request.stream()
        clock = asyncio.get_running_loop().time
        ends = clock() + self._limits.upload_seconds
        buffer = bytearray()
        try:
            while True:
                async with asyncio.timeout(min(self._limits.idle_body_seconds, ends - clock())):
                    piece = await anext(stream)
                buffer += piece
                if len(buffer) >= _PIECE:
                    yield bytes(buffer)
                    buffer.clear()
        except StopAsyncIteration:
            yield bytes(buffer)
        except TimeoutError:
            hint = "send it again, over a connection that does not pause"
            raise refused(Problem(408, "The upload came too slowly", hint=hint, headers=CLOSE)) from None

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
