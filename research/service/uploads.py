"""Uploads on their way from a request to a document: received, kept on disk, ingested by a job, and settled.

What was accepted is never lost: it lies on disk, marked as waiting, before the client hears so, and the mark goes when
an ingest is through with it. A server that was stopped or killed in between finds it at its next start (`resume`).
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from starlette.requests import ClientDisconnect

from research.errors import CtxError, ProblemError
from research.observe import log_failure, logger_of
from research.service.job import Job, JobFile, Message, State
from research.service.multipart import CLOSE, Receiver, discard, gone, too_large
from research.service.options import Limits
from research.service.problems import Problem, refused
from research.store.catalog.catalog import Catalog
from research.store.catalog.documents import get_document
from research.store.files import uploads
from research.store.files.paths import IndexPaths
from research.store.files.uploads import Upload

if TYPE_CHECKING:
    from starlette.requests import Request

    from research.service.jobs import JobRunner

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
