"""Documents over HTTP: lists, pages with the places that fit a question, their pictures, and the files themselves.

Files are served as what they are: page pictures, and PDFs whose content is still the one that was ingested.
"""

from __future__ import annotations

import hashlib
import os
import stat
import weakref
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Path as InPath
from fastapi import Query, Request
from starlette.responses import FileResponse, Response

from research.errors import NothingFoundError
from research.service import schemas
from research.service.problems import Problem, refused
from research.service.schemas import Own, Routes, document_of, page_document
from research.service.service import documents_with

if TYPE_CHECKING:
    from collections.abc import Mapping

    from research.index import Index

_KINDS = ((b"\xff\xd8\xff", "image/jpeg"), (b"\x89PNG\r\n\x1a\n", "image/png"), (b"RIFF", "image/webp"))
_MOST_DIGESTS = 1000
# It may change when pages are drawn anew, and it is nobody else's: a browser keeps it and asks whether it is the same.
_KEPT = {"Cache-Control": "private, no-cache"}
# A browser shows a PDF by a page of its own, which the policy of our pages would keep from working.
_PDF_POLICY = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"


def image_response(index: Index, doc_id: str, page: int, headers: Mapping[str, str], *, small: bool) -> Response:
    """Serve a page's picture, or its thumbnail. Not through a link, which may have come with the index."""
    info = index.documents.get(doc_id)
    path = index.documents.picture_path(info.doc_id, page, small=small)
    if not 0 < page <= info.num_pages:
        raise NothingFoundError(f"{info.filename} has no page {page}", hint=f"its pages are 1 to {info.num_pages}")
    missing = NothingFoundError(
        f"page {page} of {info.filename} has no picture in the index", hint="draw it with: ctx ingest PATH"
    )
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        raise missing from None
    response = _file_response(descriptor, headers=_KEPT)
    begin = os.pread(descriptor, 16, 0) if response is not None else b""
    kind = next((kind for sign, kind in _KINDS if begin.startswith(sign)), "")
    if response is None or not kind:
        raise missing
    if headers.get("if-none-match") == response.headers["etag"]:
        return Response(status_code=304, headers={"ETag": response.headers["etag"], **_KEPT})
    response.headers["content-type"] = kind
    return response


def _file_response(descriptor: int, **more: Any) -> FileResponse | None:
    """Serve what is open, whatever stands at its path by now; None if that is no file. The descriptor goes with the
    answer, also with one that nobody ever begins to read."""
    found = os.fstat(descriptor)
    response = FileResponse(f"/dev/fd/{descriptor}", stat_result=found, **more)
    weakref.finalize(response, os.close, descriptor)
    return response if stat.S_ISREG(found.st_mode) else None


def pdf_response(index: Index, doc_id: str) -> Response:
    """Serve the document's file. Another content than the ingested one is not it: anybody who may write its folder
    could have put a link or another file in its place, at any moment; so it is opened once and served as it is open."""
    info = index.documents.get(doc_id)
    path = index.documents.file_of(info.doc_id)
    if path is None:
        raise NothingFoundError(
            f"the file of {info.filename} is not where it was", hint="moved? ctx ingest NEWPLACE; its pages are here"
        )
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        raise NothingFoundError(f"the file of {info.filename} cannot be read") from None
    headers = {"Content-Security-Policy": _PDF_POLICY, **_KEPT}
    response = _file_response(
        descriptor, headers=headers, media_type="application/pdf", filename=info.filename,
        content_disposition_type="inline",
    )  # fmt: skip
    if response is None or _digest(descriptor) != info.sha256:
        why = f"{info.filename} is not what was ingested any more"
        hint = "bring the index up to date with: ctx ingest PATH"
        raise refused(Problem(409, "The file has changed", why, hint, "file-changed"))
    return response


_digests: dict[tuple[int, ...], str] = {}


def _digest(descriptor: int) -> str:
    """Of an open file, by what identifies its content: a viewer asks for a hundred ranges of it."""
    found = os.fstat(descriptor)
    identity = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    known = _digests.get(identity)
    if known is None:
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            known = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)  # where it is sent from, on systems where /dev/fd is a copy
        if len(_digests) >= _MOST_DIGESTS:
            _digests.clear()
        _digests[identity] = known
    return known


# Today's id, the lasting one of a file, or a former one; never a name or a path.
DocId = Annotated[str, InPath(pattern=r"^(file-)?[0-9a-f]{16}(-[0-9]{1,6})?$", description="A document's id.")]
PageNumber = Annotated[int, InPath(ge=1, le=10_000_000, description="Physical, from 1.")]

router = Routes(tags=["documents"])


@router.answer("GET /api/documents", "The documents in the index", schemas.DocumentsBody)
async def documents(
    own: Own,
    q: Annotated[str, Query(max_length=1000, description="Part of a name or title.")] = "",
    tag: Annotated[list[schemas.Name] | None, Query(max_length=100, description="All of these tags.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> Any:
    chosen = await own.anyway(lambda index: documents_with(index, q, tag or []), question=False)
    page = [document_of(*each) for each in chosen[offset : offset + limit]]
    return {"schema": "ctx.research.documents/1", "documents": page, "total": len(chosen)}


@router.answer("GET /api/documents/{doc_id}", "One document", schemas.DocumentBody)
async def document(doc_id: DocId, own: Own) -> Any:
    def find(index: Index) -> dict[str, Any]:
        info = index.documents.get(doc_id)
        return document_of(info, index.documents.tags(info.doc_id))

    return {"schema": "ctx.research.document/1"} | await own.look(find)


@router.answer("GET /api/documents/{doc_id}/outline", "Its headings with their pages", schemas.OutlineBody)
async def outline(doc_id: DocId, own: Own) -> Any:
    found = await own.look(lambda index: index.documents.outline(index.documents.get(doc_id).doc_id).to_dict())
    return {"schema": "ctx.research.context.outline/1"} | found


@router.answer(
    "GET /api/documents/{doc_id}/pages/{page}",
    "A page as markdown, with the places that fit a question",
    schemas.PageBody,
)
async def page(doc_id: DocId, page: PageNumber, own: Own, question: schemas.Question | None = None) -> Any:
    def find(index: Index) -> dict[str, object]:
        view = index.documents.page(index.documents.get(doc_id).doc_id, page, question=question)
        matches = [] if question is None else index.documents.matches(view.item.text, question)
        return page_document(view, matches)

    # With a question it is one: it is embedded, and takes its turn.
    return await (own.look if question is None else own.asked)(find)


@router.answer("GET /api/documents/{doc_id}/pages/{page}/image", "Its picture")
async def image(doc_id: DocId, page: PageNumber, own: Own, request: Request) -> Any:
    return await own.look(lambda index: image_response(index, doc_id, page, request.headers, small=False))


@router.answer("GET /api/documents/{doc_id}/pages/{page}/thumbnail", "A small one")
async def thumbnail(doc_id: DocId, page: PageNumber, own: Own, request: Request) -> Any:
    return await own.look(lambda index: image_response(index, doc_id, page, request.headers, small=True))


@router.answer(
    "GET /api/documents/{doc_id}/file",
    "The PDF itself, if it is still what was ingested",
    responses={status: {"content": {"application/pdf": {}}} for status in (200, 206)},
)
async def file(doc_id: DocId, own: Own) -> Any:
    return await own.look(lambda index: pdf_response(index, doc_id))


@router.answer("GET /api/tags", "Tags in use", schemas.TagsBody)
async def tags(own: Own) -> Any:
    found = await own.anyway(lambda index: index.documents.all_tags() if index.exists else {}, question=False)
    listed = [{"tag": tag, "documents": len(documents)} for tag, documents in found.items()]
    return {"schema": "ctx.research.tags/1", "tags": listed}
