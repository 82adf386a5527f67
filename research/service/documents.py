"""Documents over HTTP: lists, pages with the places that fit a question, their pictures, and the files themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import Response

from research.service import schemas
from research.service.answers import document_of, json_response, page_document
from research.service.files import PdfFiles, image_response

if TYPE_CHECKING:
    from research.index import Index
    from research.records import DocumentInfo
    from research.service.service import Service

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
            info = index.document(doc_id)
            return Tagged(info, index.tags(info.doc_id))

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
        found = await own.look(lambda index: index.outline(index.document(doc_id).doc_id).to_dict())
        return json_response({"schema": "ctx.research.outline/1"} | found)

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
            view = index.page(index.document(doc_id).doc_id, page, question=question)
            matches = [] if question is None else index.matches(view.item.text, question)
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
        found = await service.looking.run(lambda: own.all_tags() if own.exists else {})
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
    found = {info.doc_id: Tagged(info, []) for info in index.documents()}
    for tag, documents in index.all_tags().items():
        for info in documents:
            if info.doc_id in found:
                found[info.doc_id].tags.append(tag)
    wanted = words.casefold().split()

    def fits(each: Tagged) -> bool:
        names = f"{each.info.filename} {each.info.title}".casefold()
        return all(word in names for word in wanted) and set(tags) <= set(each.tags)

    return [each for each in found.values() if fits(each)]
