"""Ingest over HTTP: upload PDFs or name a folder, follow the job, cancel it. For the owner alone, if it was allowed."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Request
from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from research.errors import NothingFoundError
from research.schema import maybe, several
from research.service.answers import json_response
from research.service.jobs import ADDRESS, Job, paths_below
from research.service.problems import MEDIA_TYPE as PROBLEM
from research.service.problems import Problem, refused
from research.service.questions import EVENTS, STREAM_HEADERS, event
from research.service.schemas import Body, Name, ProblemDocument, answer
from research.service.uploads import FORM

if TYPE_CHECKING:
    from research.service.jobs import JobRunner
    from research.service.limits import ServeOptions
    from research.service.uploads import Uploads

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


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    words = {
        400: "The body cannot be read",
        403: "Ingest was not allowed at the start, or not to you",
        404: "There is no such job or folder",
        408: "The body came too slowly",
        413: "Too large, or too many files",
        415: "No PDF, or another content type",
        422: "The request cannot be understood",
        429: "Too many ingests wait already",
        503: "The index cannot be written now",
        507: "The disk is full",
    }
    return {
        status: {"model": ProblemDocument, "description": words[status], "content": {PROBLEM: {}}}
        for status in statuses
    }


def ingest_router(jobs: JobRunner, uploads: Uploads, options: ServeOptions) -> APIRouter:
    router = APIRouter(tags=["ingest"], default_response_class=Response)

    def permit(request: Request) -> None:
        caller = getattr(request.state, "caller", None)
        if caller is None or not caller.owner:
            hint = "ask whoever runs the server, or use a token of theirs"
            raise refused(Problem(403, "Only the owner may ingest", hint=hint))
        if not options.allow_ingest:
            hint = "start the server with: ctx serve --allow-ingest; or ingest here with: ctx ingest PATH"
            raise refused(Problem(403, "This server does not ingest", hint=hint))

    @router.post(
        ADDRESS,
        summary="Upload PDFs, or name a folder, to be ingested by a job",
        status_code=202,
        responses={202: {"model": JobDocument}, **_problems(400, 403, 404, 408, 413, 415, 422, 429, 503, 507)},
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
    async def start(request: Request) -> Response:
        permit(request)
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind == FORM:
            with jobs.reserved():
                job = uploads.submit(jobs, await uploads.receive(request))
        elif kind == "application/json":
            folder = await _folder_of(request)
            job = jobs.submit(await run_in_threadpool(folder_job, folder, options.roots))
        else:
            hint = 'send PDFs as multipart/form-data in parts of the name `files`, or JSON: {"folder": "…"}'
            raise refused(Problem(415, "Neither an upload nor JSON", hint=hint))
        response = json_response(jobs.document(job), 202)
        response.headers["Location"] = f"{ADDRESS}/{job.id}"
        return response

    @router.get(
        ADDRESS,
        summary="The last jobs, the newest first; their summaries without lists",
        responses={200: {"model": JobsDocument}, **_problems(403)},
    )
    async def listed(request: Request) -> Response:
        permit(request)
        return json_response({"schema": "ctx.ingest.jobs/1", "jobs": [_brief(job) for job in jobs.documents()]})

    @router.get(
        f"{ADDRESS}/{{job}}", summary="How a job stands", responses={200: {"model": JobDocument}, **_problems(403, 404)}
    )
    async def one(request: Request, job: JobId) -> Response:
        permit(request)
        return json_response(jobs.document(jobs.get(job)))

    @router.get(
        f"{ADDRESS}/{{job}}/events",
        summary="Follow a job by server-sent events: job, progress, file, note, done",
        responses={200: {"content": {EVENTS: {"schema": {"type": "string"}}}}, **_problems(403, 404, 429)},
    )
    async def events(request: Request, job: JobId) -> Response:
        permit(request)
        followed = jobs.follow(job)
        first = await anext(followed)  # raises while there can still be a status
        return StreamingResponse(_stream(first, followed), media_type=EVENTS, headers=STREAM_HEADERS)

    @router.delete(
        f"{ADDRESS}/{{job}}",
        summary="Cancel a job; what it has finished is kept",
        responses={
            200: {"model": JobDocument, "description": "It has ended"},
            202: {"model": JobDocument, "description": "It is ending"},
            **_problems(403, 404),
        },
    )
    async def cancel(request: Request, job: JobId) -> Response:
        permit(request)
        document = jobs.document(jobs.cancel(job))
        return json_response(document, 202 if document["state"] == "running" else 200)

    return router


def _brief(job: dict[str, Any]) -> dict[str, Any]:
    """A hundred summaries with a thousand files each are no list to look at."""
    summary = job["summary"]
    counts = {name: value for name, value in (summary or {}).items() if not isinstance(value, list)}
    return job | {"summary": None if summary is None else counts}


def folder_job(folder: str, roots: Sequence[FilePath]) -> Job:
    """A job for a folder below one of the roots, with every link followed. Of what lies outside nobody learns whether
    it exists."""
    if not roots:
        hint = "start the server with: ctx serve --allow-ingest --root DIR; or send the files"
        raise refused(Problem(403, "No folder may be ingested", hint=hint))
    inside = paths_below(folder, roots)
    if not inside:
        hint = "the folders that may be were named at the start: ctx serve --root DIR"
        raise refused(Problem(403, "This folder may not be ingested", hint=hint))
    found = next((place for place in inside if os.path.isdir(place)), None)  # noqa: PTH112  is_dir() raises for some
    if found is None:
        raise NothingFoundError("there is no such folder below the roots", hint="check the spelling of the path")
    return Job(paths=(found,), folder=str(found).encode("utf-8", "replace").decode())


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
