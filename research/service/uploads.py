"""Ingest over HTTP: upload PDFs or name a folder, follow the job, cancel it. For the owner alone, if it was allowed.

What was accepted is never lost: it lies on disk, marked as waiting, before the client hears so, and the mark goes when
an ingest is through with it. A server that was stopped or killed in between finds it at its next start (`resume`). How
large and how slow a body may be is the guard's business.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import AsyncIterator, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Path, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse

from research.errors import CtxError, ProblemError, is_full, next_step, unusable
from research.observe import log_failure
from research.schema import maybe, several
from research.service.jobs import ADDRESS, Job, JobFile, State, place_below
from research.service.problems import Problem, only_for_owner, refused
from research.service.questions import EVENTS, STREAM_HEADERS, event
from research.service.schemas import Body, Name, ProblemDocument, Routes, answer, json_response
from research.service.service import Limits
from research.store import Catalog, IndexPaths, files

if TYPE_CHECKING:
    from research.service.jobs import JobRunner
    from research.service.service import ServeOptions

# The name of an uploaded file comes from anywhere and becomes a name on this disk.
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


FORM = "multipart/form-data"

_HEAD = 8192  # bytes in which a PDF says that it is one, as `ctx ingest` has it
_SIGN = b"%PDF"
_OTHER_FIELDS = 20
_PIECE = 256 * 1024  # bytes that are written at once
# Outcomes that say nothing against the file: it goes on waiting. `killed`: its reader was, perhaps for want of memory.
_NOT_ITS_FAULT = {"killed", "gone"}
# Outcomes that no other try will change. The sender has the file and is told; a copy would fill the disk for nothing.
_NO_DOCUMENT = {"not_a_pdf", "damaged", "encrypted", "empty", "no_pages"}


class Uploads:
    """The uploads of one index, and the jobs that read them."""

    def __init__(self, paths: IndexPaths, jobs: JobRunner, limits: Limits | None = None) -> None:
        self._paths = paths
        self._jobs = jobs
        self._limits = limits or Limits()

    async def receive(self, request: Request) -> list[files.Upload]:
        """Take the files of a request, all of them or none. Raises ProblemError, and then nothing is left."""
        try:
            async with request.form(max_files=self._limits.upload_files, max_fields=_OTHER_FIELDS) as form:
                sent = [each for each in form.getlist("files") if isinstance(each, UploadFile)]
                # A form without a chosen file sends an empty part.
                return await asyncio.to_thread(self._keep, [each for each in sent if each.filename or each.size])
        except ClientDisconnect:
            raise refused(Problem(400, "The client went away")) from None
        except (HTTPException, MultiPartException) as error:
            raise self._malformed(str(getattr(error, "detail", error))) from None
        except OSError as error:
            raise _trouble(error) from error

    def _keep(self, sent: Sequence[UploadFile]) -> list[files.Upload]:
        """Write files into the index, where they are uploads from here on, all or none."""
        if not sent:
            hint = "send PDFs as parts of the name `files`"
            raise refused(Problem(422, "There is no file in the request", hint=hint))
        for each in sent:
            if _SIGN not in each.file.read(_HEAD):
                why = f"{safe_name(each.filename or '')} does not begin like one"
                raise refused(Problem(415, "A file is no PDF", why, "ctx reads PDFs; nothing was taken"))
        kept: list[files.Upload] = []
        try:
            for each in sent:
                each.file.seek(0)
                incoming = files.Incoming(self._paths, safe_name(each.filename or ""))
                try:
                    while piece := each.file.read(_PIECE):
                        incoming.write(piece)
                except BaseException:
                    incoming.drop()
                    raise
                kept.append(incoming.keep())
        except OSError:
            self._discard(kept)
            raise
        return kept

    def _discard(self, kept: Sequence[files.Upload]) -> None:
        """Take uploads back that nobody was told of. What was there before, or is in a job, stays."""
        for upload in kept:
            with self._jobs.unread(upload.doc_id) as unread:
                if upload.fresh and unread:
                    files.remove(self._paths, upload.doc_id)

    def _malformed(self, why: str) -> ProblemError:
        if why.startswith("Too many"):
            most = f"a request may hold {self._limits.upload_files} files"
            return refused(Problem(413, "Too many files at once", most, "send them in several requests"))
        hint = "send PDFs as multipart/form-data, in parts of the name `files`"
        return refused(Problem(400, "The upload cannot be read", f"the body is no multipart form: {why}", hint))

    def submit(self, received: Sequence[files.Upload]) -> Job:
        """Submit a job for what was received. If there is none to be had, nothing is left of it."""
        chosen = list({upload.doc_id: upload for upload in received}.values())
        job = Job(
            paths=tuple(upload.path for upload in chosen),
            files=tuple(JobFile(upload.name, upload.size, upload.doc_id) for upload in chosen),
            on_end=lambda job, state: self._end(chosen, job, state),
        )
        try:
            return self._jobs.submit(job, reserved=True)
        except ProblemError:
            self._discard(received)
            raise

    def resume(self) -> list[Job]:
        """At the start: submit a job for each file that an earlier server accepted and did not finish. A file that ends
        its process keeps no other from being read."""
        try:
            files.sweep(self._paths)
            waiting = files.waiting_uploads(self._paths)
        except OSError as error:
            log_failure("service", "looking for uploads", error)
            return []
        return [self.submit([upload]) for upload in waiting]

    def _end(self, chosen: Sequence[files.Upload], job: Job, state: State) -> None:
        """What was read no longer waits. What nobody can read is gone, and so is what a cancelled job had not come to;
        what failed otherwise is marked. After any other end the rest waits for the next start."""
        for upload in chosen:
            outcome = job.outcomes.get(upload.doc_id)
            if outcome is None or state not in ("done", "cancelled"):
                if state == "cancelled":
                    self._forget(upload, job)
            elif outcome["result"] != "failed":
                files.settle(upload)
            elif outcome["code"] in _NO_DOCUMENT:
                self._forget(upload, job)
            elif outcome["code"] not in _NOT_ITS_FAULT:
                files.fail(upload, outcome["code"], outcome["reason"])

    def _forget(self, upload: files.Upload, job: Job) -> None:
        with self._jobs.unread(upload.doc_id, besides=job) as unread:
            if not unread:  # it was sent twice, and the other job looks after it
                return
            if self._is_known(upload):
                files.settle(upload)
            else:
                files.remove(self._paths, upload.doc_id)

    def _is_known(self, upload: files.Upload) -> bool:
        try:
            with Catalog(self._paths) as catalog:
                return catalog.documents.get(upload.doc_id) is not None
        except CtxError:  # there is no index yet
            return self._paths.exists


def _trouble(error: OSError) -> ProblemError:
    if is_full(error):
        hint = "free some space and send it again; nothing of it was kept"
        return refused(Problem(507, "The disk is full", error.strerror or "", hint))
    found = unusable("the index cannot be written", error)
    return refused(Problem(503, "The upload cannot be kept", found.message, next_step(error) or found.hint))


JobId = Annotated[str, Path(pattern="^[0-9a-f]{32}$", description="A job's id.", examples=["0" * 32])]


class FolderBody(Body):
    """A folder of PDFs below one of the roots that were allowed at the start."""

    folder: Name = Field(description="An absolute path, or one below a root.", examples=["/home/me/papers"])


_JOB_FILE = answer("JobFile", name=str, size=int, doc_id=str, **dict.fromkeys(("result", "code", "reason"), maybe(str)))
JobDocument = answer(
    "JobDocument",
    Job,
    "id state created_at ended_at folder note",
    files=several(_JOB_FILE),
    progress=answer("Progress", stage=str, done=int, total=int, file=maybe(str)),
    summary=dict[str, Any] | None,
    problem=ProblemDocument | None,
    url=str,
    events_url=str,
)
JobsDocument = answer("JobsDocument", jobs=several(JobDocument))


_FILES = {
    "type": "object",
    "required": ["files"],
    "properties": {
        "files": {
            "type": "array",
            "minItems": 1,
            "items": {"type": "string", "format": "binary", "contentMediaType": "application/pdf"},
            "description": "PDFs; their names are shown, and not trusted.",
        }
    },
}


_ALSO: dict[int | str, dict[str, Any]] = {
    403: {"description": "Ingest was not allowed at the start, or not to you"},
    408: {"description": "The body came too slowly"},
    415: {"description": "No PDF, or another content type"},
    507: {"description": "The disk is full"},
}


def ingest_router(jobs: JobRunner, uploads: Uploads, options: ServeOptions) -> Routes:
    async def permit(request: Request) -> None:
        caller = getattr(request.state, "caller", None)
        if caller is None or not caller.owner:
            raise only_for_owner("ingest")
        if not options.allow_ingest:
            hint = "start the server with: ctx serve --allow-ingest; or ingest here with: ctx ingest PATH"
            raise refused(Problem(403, "This server does not ingest", hint=hint))

    router = Routes(tags=["ingest"], responses=_ALSO, dependencies=[Depends(permit)])

    @router.answer(
        f"POST {ADDRESS}",
        "Upload PDFs, or name a folder, to be ingested by a job",
        JobDocument,
        status=202,
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {
                    FORM: {"schema": _FILES},
                    "application/json": {"schema": FolderBody.model_json_schema()},
                },
            }
        },
    )
    async def start(request: Request) -> Any:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == FORM:
            with jobs.reserved():
                job = uploads.submit(await uploads.receive(request))
        elif kind == "application/json":
            folder = await _folder_of(request)
            job = jobs.submit(await run_in_threadpool(folder_job, folder, options.roots))
        else:
            hint = 'send PDFs as multipart/form-data in parts of the name `files`, or JSON: {"folder": "…"}'
            raise refused(Problem(415, "Neither an upload nor JSON", hint=hint))
        response = json_response(jobs.document(job), 202)
        response.headers["Location"] = f"{ADDRESS}/{job.id}"
        return response

    @router.answer(f"GET {ADDRESS}", "The last jobs, the newest first; their summaries without lists", JobsDocument)
    async def listed() -> Any:
        return {"schema": "ctx.ingest.jobs/1", "jobs": [_brief(job) for job in jobs.documents()]}

    @router.answer(f"GET {ADDRESS}/{{job}}", "How a job stands", JobDocument)
    async def one(job: JobId) -> Any:
        return jobs.document(jobs.get(job))

    @router.answer(
        f"GET {ADDRESS}/{{job}}/events",
        "Follow a job by server-sent events: job, progress, file, note, done",
        responses={200: {"content": {EVENTS: {"schema": {"type": "string"}}}}},
    )
    async def events(job: JobId) -> Any:
        followed = jobs.follow(job)
        first = await anext(followed)  # raises while there can still be a status
        return StreamingResponse(_stream(first, followed), media_type=EVENTS, headers=STREAM_HEADERS)

    @router.answer(
        f"DELETE {ADDRESS}/{{job}}",
        "Cancel a job; what it has finished is kept",
        JobDocument,
        responses={202: {"model": JobDocument, "description": "It is ending"}},
    )
    async def cancel(job: JobId) -> Any:
        document = jobs.document(jobs.cancel(job))
        return json_response(document, 202 if document["state"] == "running" else 200)

    return router


def _brief(job: dict[str, Any]) -> dict[str, Any]:
    """A hundred summaries with a thousand files each are no list to look at."""
    summary = job["summary"]
    counts = {name: value for name, value in (summary or {}).items() if not isinstance(value, list)}
    return job | {"summary": None if summary is None else counts}


def folder_job(folder: str, roots: Sequence[FilePath]) -> Job:
    place = place_below(folder, roots)
    return Job(paths=(place,), folder=str(place).encode("utf-8", "replace").decode())


async def _folder_of(request: Request) -> str:
    """Read the body here, because one route takes two kinds. What is wrong with it is told as everywhere."""
    try:
        return FolderBody.model_validate_json(await request.body()).folder
    except ValidationError as error:
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in error.errors()]) from None


async def _stream(
    first: tuple[str, dict[str, Any]] | None, followed: AsyncIterator[tuple[str, dict[str, Any]] | None]
) -> AsyncIterator[bytes]:
    if first is not None:
        yield event(*first)
    async for told in followed:
        yield b": still working\n\n" if told is None else event(*told)
