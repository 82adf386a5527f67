"""Documents over HTTP: lists, pages with the places that fit a question, their pictures, and the files themselves.

Files that are served as what they are: page pictures, and PDFs whose content is still the one that was ingested.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response, StreamingResponse

from research.errors import NothingFoundError
from research.service import schemas
from research.service.answers import document_of, json_response, page_document
from research.service.problems import Problem, refused

if TYPE_CHECKING:
    from research.index import Index
    from research.records import DocumentInfo
    from research.service.service import Service


_KINDS = ((b"\xff\xd8\xff", "image/jpeg"), (b"\x89PNG\r\n\x1a\n", "image/png"), (b"RIFF", "image/webp"))
_MOST_IMAGE = 64 * 1024 * 1024
_PIECE = 256 * 1024
_MOST_DIGESTS = 1000
# It may change when pages are drawn anew, and it is nobody else's: a browser keeps it and asks whether it is the same.
_KEPT = {"Cache-Control": "private, no-cache"}
# A browser shows a PDF by a page of its own, which the policy of our pages would keep from working.
_PDF_POLICY = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_RANGE = re.compile(r"bytes=(?P<first>[0-9]{0,18})-(?P<last>[0-9]{0,18})", re.ASCII)


def image_response(index: Index, doc_id: str, page: int, headers: Mapping[str, str], *, small: bool) -> Response:
    """A page's picture, or its thumbnail."""
    info = index.documents.get(doc_id)
    path = index.documents.picture_path(info.doc_id, page, small=small)
    missing = NothingFoundError(
        f"page {page} of {info.filename} has no picture in the index", hint="draw it with: ctx ingest PATH"
    )
    if not 0 < page <= info.num_pages:
        raise NothingFoundError(f"{info.filename} has no page {page}", hint=f"its pages are 1 to {info.num_pages}")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        raise missing from None
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_IMAGE:
            raise missing
        tag = f'"{found.st_mtime_ns:x}-{found.st_size:x}"'
        if headers.get("if-none-match") == tag:
            return Response(status_code=304, headers={"ETag": tag, **_KEPT})
        data = file.read()
    kind = next((kind for begin, kind in _KINDS if data.startswith(begin)), "")
    if not kind:
        raise missing
    return Response(data, media_type=kind, headers={"ETag": tag, **_KEPT})


class PdfFiles:
    """Serves documents' files. Remembers which files it has read to the end, by what identifies their content: a
    viewer asks for a hundred ranges of one."""

    def __init__(self) -> None:
        self._digests: dict[tuple[int, ...], str] = {}

    def response(self, index: Index, doc_id: str, headers: Mapping[str, str]) -> Response:
        """The document's file, whole or a range of it. Another content than the ingested one is not it: anybody who may
        write its folder could have put a link or another file in its place."""
        info = index.documents.get(doc_id)
        path = index.documents.file_of(info.doc_id)
        if path is None:
            raise NothingFoundError(
                f"the file of {info.filename} is not where it was",
                hint="moved? ctx ingest NEWPLACE; its pages are here",
            )
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            raise NothingFoundError(f"the file of {info.filename} cannot be read") from None
        try:
            size = self._check_same(descriptor, info)
            span = _span(headers.get("range", ""), size)
        except BaseException:
            os.close(descriptor)
            raise
        first, last = span or (0, size - 1)
        sent = {
            "Content-Length": str(last - first + 1),
            "Accept-Ranges": "bytes",
            "Content-Disposition": f"inline; filename*=UTF-8''{quote(info.filename, safe='')}",
            "Content-Security-Policy": _PDF_POLICY,
            **_KEPT,
        }
        if span is not None:
            sent["Content-Range"] = f"bytes {first}-{last}/{size}"
        pieces = _pieces(descriptor, first, last + 1)
        return StreamingResponse(pieces, 206 if span else 200, sent, media_type="application/pdf")

    def _check_same(self, descriptor: int, info: DocumentInfo) -> int:
        """The file's size, if it holds what was ingested."""
        found = os.fstat(descriptor)
        identity = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        if not stat.S_ISREG(found.st_mode) or self._digest(descriptor, identity) != info.sha256:
            raise refused(
                Problem(
                    409,
                    "The file has changed",
                    f"{info.filename} is not what was ingested any more",
                    "bring the index up to date with: ctx ingest PATH",
                    "file-changed",
                )
            )
        return found.st_size

    def _digest(self, descriptor: int, identity: tuple[int, ...]) -> str:
        known = self._digests.get(identity)
        if known is None:
            digest = hashlib.sha256()
            for piece in _read(descriptor, 0, identity[2]):
                digest.update(piece)
            known = digest.hexdigest()
            if len(self._digests) >= _MOST_DIGESTS:
                self._digests.clear()
            self._digests[identity] = known
        return known


def _span(wanted: str, size: int) -> tuple[int, int] | None:
    """The first and last byte of a single range; None for the whole file. What cannot be read is ignored, as HTTP has
    it; what lies outside is an error."""
    match = _RANGE.fullmatch(wanted.strip())
    if match is None or not (match["first"] or match["last"]):
        return None
    if not match["first"]:
        first, last = max(0, size - int(match["last"])), size - 1
    else:
        first, last = int(match["first"]), min(int(match["last"] or size - 1), size - 1)
    if first > last or first >= size:
        raise refused(Problem(416, "There is no such part of the file", headers={"Content-Range": f"bytes */{size}"}))
    return first, last


def _pieces(descriptor: int, at: int, end: int) -> Iterator[bytes]:
    """The descriptor goes with the iterator, also with one that nobody ever begins to read."""
    pieces = _read(descriptor, at, end)
    weakref.finalize(pieces, os.close, descriptor)
    return pieces


def _read(descriptor: int, at: int, end: int) -> Iterator[bytes]:
    while at < end and (piece := os.pread(descriptor, min(_PIECE, end - at), at)):
        yield piece
        at += len(piece)


# Today's id, the lasting one of a file, or a former one; never a name or a path.
DocId = Annotated[str, Path(pattern=r"^(file-)?[0-9a-f]{16}(-[0-9]{1,6})?$", description="A document's id.")]
PageNumber = Annotated[int, Path(ge=1, le=10_000_000, description="Physical, from 1.")]


def documents_router(service: Service) -> APIRouter:
    router = APIRouter(tags=["documents"])
    files = PdfFiles()

    @router.get(
        "/api/documents",
        summary="The documents in the index",
        response_class=Response,
        responses={200: {"model": schemas.DocumentsBody}},
    )
    async def documents(
        request: Request,
        q: Annotated[str, Query(max_length=1000, description="Part of a name or title.")] = "",
        tag: Annotated[list[schemas.Name] | None, Query(max_length=100, description="All of these tags.")] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
        offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
    ) -> Response:
        own = service.index.acting_as(request.state.caller)
        chosen = await service.looking.run(lambda: _chosen(own, q, tag or []))
        page = [document_of(each.info, each.tags) for each in chosen[offset : offset + limit]]
        return json_response({"schema": "ctx.research.documents/1", "documents": page, "total": len(chosen)})

    @router.get(
        "/api/documents/{doc_id}",
        summary="One document",
        response_class=Response,
        responses={200: {"model": schemas.DocumentBody}},
    )
    async def document(doc_id: DocId, request: Request) -> Response:
        def find(index: Index) -> Tagged:
            info = index.documents.get(doc_id)
            return Tagged(info, index.documents.tags(info.doc_id))

        found = await service.acting_as(request.state.caller).look(find)
        return json_response({"schema": "ctx.research.document/1"} | document_of(found.info, found.tags))

    @router.get(
        "/api/documents/{doc_id}/outline",
        summary="Its headings with their pages",
        response_class=Response,
        responses={200: {"model": schemas.OutlineBody}},
    )
    async def outline(doc_id: DocId, request: Request) -> Response:
        own = service.acting_as(request.state.caller)
        found = await own.look(lambda index: index.documents.outline(index.documents.get(doc_id).doc_id).to_dict())
        return json_response({"schema": "ctx.research.context.outline/1"} | found)

    @router.get(
        "/api/documents/{doc_id}/pages/{page}",
        summary="A page as markdown, with the places that fit a question",
        response_class=Response,
        responses={200: {"model": schemas.PageBody}},
    )
    async def page(
        doc_id: DocId, page: PageNumber, request: Request, question: schemas.Question | None = None
    ) -> Response:
        def find(index: Index) -> dict[str, object]:
            view = index.documents.page(index.documents.get(doc_id).doc_id, page, question=question)
            matches = [] if question is None else index.documents.matches(view.item.text, question)
            return page_document(view, matches)

        # With a question it is one: it is embedded, and takes its turn.
        own = service.acting_as(request.state.caller)
        turns = own.look if question is None else own.asked
        return json_response(await turns(find))

    @router.get("/api/documents/{doc_id}/pages/{page}/image", summary="Its picture", response_class=Response)
    async def image(doc_id: DocId, page: PageNumber, request: Request) -> Response:
        own = service.acting_as(request.state.caller)
        return await own.look(lambda index: image_response(index, doc_id, page, request.headers, small=False))

    @router.get("/api/documents/{doc_id}/pages/{page}/thumbnail", summary="A small one", response_class=Response)
    async def thumbnail(doc_id: DocId, page: PageNumber, request: Request) -> Response:
        own = service.acting_as(request.state.caller)
        return await own.look(lambda index: image_response(index, doc_id, page, request.headers, small=True))

    @router.get(
        "/api/documents/{doc_id}/file",
        summary="The PDF itself, if it is still what was ingested",
        response_class=Response,
        responses={200: {"content": {"application/pdf": {}}}, 206: {"content": {"application/pdf": {}}}},
    )
    async def file(doc_id: DocId, request: Request) -> Response:
        own = service.acting_as(request.state.caller)
        return await own.look(lambda index: files.response(index, doc_id, request.headers))

    @router.get(
        "/api/tags", summary="Tags in use", response_class=Response, responses={200: {"model": schemas.TagsBody}}
    )
    async def tags(request: Request) -> Response:
        own = service.index.acting_as(request.state.caller)
        found = await service.looking.run(lambda: own.documents.all_tags() if own.exists else {})
        listed = [{"tag": tag, "documents": len(documents)} for tag, documents in found.items()]
        return json_response({"schema": "ctx.research.tags/1", "tags": listed})

    return router


@dataclass(frozen=True, slots=True)
class Tagged:
    """A document and its tags."""

    info: DocumentInfo
    tags: list[str]


def _chosen(index: Index, words: str, tags: list[str]) -> list[Tagged]:
    """Documents whose name or title has all the words and that have all the tags; none of an index that is not there
    yet."""
    if not index.exists:
        return []
    found = {info.doc_id: Tagged(info, []) for info in index.documents.list()}
    for tag, documents in index.documents.all_tags().items():
        for info in documents:
            if info.doc_id in found:
                found[info.doc_id].tags.append(tag)
    wanted = words.casefold().split()

    def fits(each: Tagged) -> bool:
        names = f"{each.info.filename} {each.info.title}".casefold()
        return all(word in names for word in wanted) and set(tags) <= set(each.tags)

    return [each for each in found.values() if fits(each)]
