"""Documents over HTTP: lists, pages with their places, pictures and files served as what they are, and never others."""

from __future__ import annotations

import gc
import os
import shutil
from pathlib import Path

import httpx
from starlette.responses import FileResponse

from ingest import ingest
from research.index import Index
from research.service.documents import image_response, pdf_response
from research.service.service import Service
from research.store import IndexPaths
from tests.conftest import write_pdf
from tests.research.service.serving_app import run

QUESTION = "How long is parental leave under the 2025 handbook?"


async def first(client: httpx.AsyncClient, name: str) -> dict[str, str]:
    found = (await client.get("/api/documents", params={"q": name})).json()
    [document] = found["documents"]
    return dict(document)


def test_documents_are_listed_chosen_and_paged(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient, service: Service) -> None:
        every = (await client.get("/api/documents")).json()
        assert every["total"] == len(every["documents"]) == 6
        some = (await client.get("/api/documents", params={"q": "HANDBOOK saltmarsh", "limit": 1})).json()
        assert (some["total"], len(some["documents"])) == (2, 1)
        rest = (await client.get("/api/documents", params={"q": "handbook", "limit": 5, "offset": 1})).json()
        assert len(rest["documents"]) == 1
        assert (await client.get("/api/documents", params={"tag": "none"})).json()["total"] == 0

    run(work, sample_index)


def test_a_page_with_the_places_that_fit_a_question(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient, service: Service) -> None:
        document = await first(client, "handbook-2025")
        page = (await client.get(f"{document['url']}/pages/7", params={"question": QUESTION})).json()
        assert page["page"] == 7
        assert "18 weeks" in page["markdown"]
        assert all(0 <= edge <= 1 for box in page["boxes"] for edge in box["box"])
        assert page["boxes"]
        marked = [page["markdown"][start:end].lower() for start, end in page["matches"]]
        assert "leave" in marked
        assert page["previous_url"].endswith("/pages/6")
        last = (await client.get(f"{document['url']}/pages/{document['num_pages']}")).json()
        assert last["next_url"] is None
        assert last["boxes"] == []

    run(work, sample_index)


def test_pictures_are_pictures_and_are_asked_for_once(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient, service: Service) -> None:
        document = await first(client, "handbook-2025")
        for name, kind in (("image", "image/jpeg"), ("thumbnail", "image/webp")):
            found = await client.get(f"{document['url']}/pages/7/{name}")
            assert found.headers["content-type"] == kind
            same = await client.get(
                f"{document['url']}/pages/7/{name}", headers={"If-None-Match": found.headers["etag"]}
            )
            assert (same.status_code, same.content) == (304, b"")

    run(work, sample_index)


def test_a_picture_that_is_a_link_or_something_else_is_not_served(sample_index: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(sample_index, tmp_path / "index"))
    secret = tmp_path / "secret.jpg"
    secret.write_bytes(b"\xff\xd8\xff secret")

    async def work(client: httpx.AsyncClient, service: Service) -> None:
        document = await first(client, "handbook-2025")
        paths = IndexPaths(root)
        picture = Path(paths.image_path(str(document["doc_id"]), 7))
        picture.unlink()
        picture.symlink_to(secret)
        assert (await client.get(f"{document['url']}/pages/7/image")).status_code == 404
        picture.unlink()
        picture.write_text("<html><script>alert(1)</script>")
        assert (await client.get(f"{document['url']}/pages/7/image")).status_code == 404

    run(work, root)


def test_unknown_ids_and_pages(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient, service: Service) -> None:
        document = await first(client, "handbook-2025")
        for path, status in (
            ("/api/documents/ffffffffffffffff", 404),
            ("/api/documents/ffffffffffffffff/file", 404),
            ("/api/documents/ffffffffffffffff/outline", 404),
            ("/api/documents/ffffffffffffffff/pages/1/image", 404),
            ("/api/documents/saltmarsh-handbook-2025.pdf", 422),
            ("/api/documents/..%2f..%2fetc%2fpasswd/file", 404),
            ("/api/documents/{id}/pages/0", 422),
            ("/api/documents/{id}/pages/-1/image", 422),
            ("/api/documents/{id}/pages/999", 404),
            ("/api/documents/{id}/pages/999/thumbnail", 404),
            ("/api/documents/{id}/pages/99999999999999999999", 422),
            ("/api/documents/{id}/pages/one", 422),
            ("/api/documents?limit=0", 422),
            ("/api/documents?offset=-1", 422),
        ):
            found = await client.get(path.replace("{id}", str(document["doc_id"])))
            assert found.status_code == status, (path, found.text)
            assert found.json()["status"] == status, path

    run(work, sample_index)


def test_ids_that_last_go_on_meaning_a_document(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient, service: Service) -> None:
        document = await first(client, "handbook-2025")
        by_file = (await client.get(f"/api/documents/{document['file_id']}")).json()
        assert by_file["doc_id"] == document["doc_id"]

    run(work, sample_index)


def test_a_file_is_served_whole_or_in_part_and_only_as_it_was_ingested(tmp_path: Path) -> None:
    root, pdf = tmp_path / "index", write_pdf(tmp_path / "docs" / "note.pdf", ["Tomatoes need sun."])
    ingest(IndexPaths(root), [pdf])
    content = pdf.read_bytes()
    hidden = tmp_path / "hidden.txt"
    hidden.write_text("%PDF-1.7 somebody's secret")

    async def work(client: httpx.AsyncClient, service: Service) -> None:
        url = (await first(client, "note"))["file_url"]
        whole = await client.get(url)
        assert whole.content == content
        assert whole.headers["content-type"] == "application/pdf"
        assert "note.pdf" in whole.headers["content-disposition"]
        for wanted, part in (
            ("bytes=0-4", content[:5]),
            ("bytes=-7", content[-7:]),
            (f"bytes={len(content) - 3}-", content[-3:]),
            ("bytes=10-99999999", content[10:]),
        ):
            found = await client.get(url, headers={"Range": wanted})
            assert (found.status_code, found.content) == (206, part)
        assert (await client.get(url, headers={"Range": "bytes=99999999-"})).status_code == 416
        pdf.unlink()
        pdf.symlink_to(hidden)
        changed = await client.get(url)
        assert changed.status_code == 409
        assert "secret" not in changed.text
        pdf.unlink()
        os.mkfifo(pdf)
        assert (await client.get(url)).status_code in (404, 409), "nothing waits for a pipe"
        pdf.unlink()
        assert (await client.get(url)).status_code == 404

    run(work, root)


def test_what_was_checked_is_what_is_sent(tmp_path: Path) -> None:
    root, pdf = tmp_path / "index", write_pdf(tmp_path / "docs" / "note.pdf", ["Tomatoes need sun."])
    ingest(IndexPaths(root), [pdf])
    hidden = tmp_path / "hidden.txt"
    hidden.write_text("somebody's secret")
    with Index(root) as index:
        [info] = index.documents.list()
        for small in (None, False):  # the file, the picture of its page
            place = pdf if small is None else index.documents.picture_path(info.doc_id, 1, small=small)
            sent = place.read_bytes()
            answer = (
                pdf_response(index, info.doc_id)
                if small is None
                else image_response(index, info.doc_id, 1, {}, small=small)
            )
            assert isinstance(answer, FileResponse)
            place.unlink()
            place.symlink_to(hidden)
            assert Path(answer.path).read_bytes() == sent, "whatever stands at its place by now"


def test_descriptors_are_let_go(sample_index: Path) -> None:
    async def work(client: httpx.AsyncClient, service: Service) -> None:
        url = (await first(client, "handbook-2025"))["file_url"]
        for _ in range(5):
            await client.get(url)
            await client.get(url, headers={"Range": "bytes=99999999-"})
        gc.collect()
        led_to = [os.path.realpath(f"/proc/self/fd/{number}") for number in range(1024)]
        assert not [path for path in led_to if path.endswith(".pdf")]

    run(work, sample_index)
