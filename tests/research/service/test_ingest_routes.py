"""Ingest over HTTP: uploads and folders with real ingests, events, cancelling, and every way to be refused."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from ingest import start_job
from research.governance import Principal
from research.service.jobs import JobRunner, StartJob
from research.service.service import Limits, ServeOptions
from research.service.uploads import Uploads, ingest_router
from research.settings import Settings
from research.store import IndexPaths
from research.store import files as stored
from tests.conftest import write_pdf
from tests.research.service.serving_app import OWNER, client_of, events
from tests.served import served_here
from tests.soak.running import PATIENCE

QUICK = Settings(ocr="off", images=False)
PDF = b"%PDF-1.7 not much of one"


Work = Callable[[httpx.AsyncClient], Coroutine[Any, Any, None]]


def run(
    work: Work, root: Path, start: StartJob | None = None, *, caller: Principal | None = OWNER, **options: Any
) -> None:
    """Do this with a client of a service with its ingest."""

    async def main() -> None:
        chosen = ServeOptions(**{"allow_ingest": True, **options})
        jobs = JobRunner(start or partial(start_job, root, QUICK), most_waiting=chosen.limits.jobs)
        router = ingest_router(jobs, Uploads(IndexPaths(root), jobs, chosen.limits), chosen)
        async with client_of(root, chosen, QUICK, routers=[router], caller=caller) as (client, _):
            try:
                await work(client)
            finally:
                await asyncio.to_thread(jobs.stop, PATIENCE)

    asyncio.run(main())


async def jobs_of(client: httpx.AsyncClient) -> list[Any]:
    return list((await client.get("/api/ingest")).json()["jobs"])


def never(paths: Sequence[Path]) -> subprocess.Popen[bytes]:
    """A process that works on and on."""
    return subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], stdout=subprocess.PIPE)


def files(*contents: bytes | tuple[str, bytes]) -> list[tuple[str, Any]]:
    return [("files", content if isinstance(content, tuple) else ("a.pdf", content)) for content in contents]


async def done(client: httpx.AsyncClient, job: dict[str, Any]) -> dict[str, Any]:
    """Follow a job to its end, as a client does."""
    told = events((await client.get(job["events_url"])).text)
    assert told[0][0] == "job"
    assert told[-1][0] == "done"
    document: dict[str, Any] = (await client.get(job["url"])).json()
    assert document == told[-1][1]
    return document


def is_problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["status"] == status
    assert document["title"]
    return document


def test_an_upload_becomes_a_document_that_answers(tmp_path: Path) -> None:
    root = tmp_path / "index"
    pdf = write_pdf(tmp_path / "walrus.pdf", ["The walrus has two long tusks."])

    async def work(client: httpx.AsyncClient) -> None:
        sent = files(("../../walrus.pdf", pdf.read_bytes()), ("broken.pdf", PDF))
        answer = await client.post("/api/ingest", files=sent)
        assert answer.status_code == 202
        job = answer.json()
        assert answer.headers["location"] == job["url"]
        assert [(file["name"], file["size"]) for file in job["files"]] == [
            ("walrus.pdf", pdf.stat().st_size),
            ("broken.pdf", len(PDF)),
        ]
        ended = await done(client, job)
        assert (ended["state"], ended["summary"]["added"], ended["summary"]["failed"]) == ("done", 1, 1)
        [listed] = (await client.get("/api/ingest")).json()["jobs"]
        assert (listed["id"], listed["summary"]["added"], "files" in listed["summary"]) == (job["id"], 1, False)
        found = (await client.post("/api/search", json={"query": "tusks"})).json()["results"]
        assert [result["filename"] for result in found] == ["walrus.pdf"]
        file = await client.get(f"/api/documents/{job['files'][0]['doc_id']}/file")
        assert file.content == pdf.read_bytes()
        assert (await client.delete(job["url"])).json() == ended, "what has ended stays as it is"

    run(work, root)


@pytest.mark.slow
def test_a_folder_below_a_root(tmp_path: Path) -> None:
    root, allowed = tmp_path / "index", tmp_path / "allowed"
    write_pdf(allowed / "papers" / "seal.pdf", ["The seal has none."])
    (allowed / "empty").mkdir()

    async def work(client: httpx.AsyncClient) -> None:
        job = (await client.post("/api/ingest", json={"folder": str(allowed / "papers")})).json()
        assert (job["folder"], job["files"]) == (str(allowed / "papers"), [])
        ended = await done(client, job)
        assert [file["filename"] for file in ended["summary"]["files"]] == ["seal.pdf"]
        again = await done(client, (await client.post("/api/ingest", json={"folder": "papers"})).json())
        assert again["summary"]["unchanged"] == 1
        nothing = await done(client, (await client.post("/api/ingest", json={"folder": "empty"})).json())
        assert (nothing["state"], nothing["problem"]["status"]) == ("failed", 404)
        assert "no PDF files" in nothing["problem"]["detail"]

    run(work, root, roots=(allowed,))


def test_what_lies_outside_the_roots_is_refused_whether_it_is_there_or_not(tmp_path: Path) -> None:
    allowed, secret = tmp_path / "allowed", tmp_path / "secret"
    allowed.mkdir()
    secret.mkdir()
    (allowed / "out").symlink_to(secret)
    (allowed / "loop").symlink_to(allowed / "loop")
    (allowed / "file.pdf").write_bytes(PDF)

    async def work(client: httpx.AsyncClient) -> None:
        answers = [
            is_problem(await client.post("/api/ingest", json={"folder": folder}), 403)
            for folder in (
                str(secret), str(tmp_path / "no such"), "../secret", "out", "out/deeper", "/", "/proc/self/cwd", "..",
                f"{allowed}/../secret", "./../allowed2", "/" + "x" * 4000,
            )
        ]  # fmt: skip
        assert len({json.dumps(answer) for answer in answers}) == 1, "not a word differs"
        for folder in ("no such folder", "loop", "x" * 4000, "𝄞"):
            is_problem(await client.post("/api/ingest", content=json.dumps({"folder": folder}), headers=JSON), 404)
        assert await jobs_of(client) == []

    run(work, tmp_path / "index", roots=(allowed,))


JSON = {"content-type": "application/json"}


def test_bodies_that_nobody_can_use(tmp_path: Path) -> None:
    root = tmp_path / "index"
    form = {"content-type": "multipart/form-data; boundary=x"}

    async def work(client: httpx.AsyncClient) -> None:
        for body, headers, status in (
            (b"", {}, 415),
            (b"%PDF", {"content-type": "application/pdf"}, 415),
            (b"{", JSON, 400),
            (b"\xff\xfe", JSON, 400),
            (b"[]", JSON, 422),
            (b"{}", JSON, 422),
            (b'{"folder": 7}', JSON, 422),
            (b'{"folder": "a\\u0000b"}', JSON, 422),
            (b'{"folder": ".", "prune": true}', JSON, 422),
            (b"[" * 100_000, JSON, 400),
            (b'--x\r\nContent-Disposition: form-data; name="files"\r\n\r\n%PDF', form, 422),
            (b"--x--", {"content-type": "multipart/form-data"}, 400),
        ):
            answer = await client.post("/api/ingest", content=body, headers=headers)
            assert is_problem(answer, status)["hint"], (body[:40], headers)
        assert is_problem(await client.post("/api/ingest", files=files(b"no PDF")), 415)["hint"]
        three = await client.post("/api/ingest", files=files(PDF, PDF + b"2", PDF + b"3"))
        assert "many" in is_problem(three, 413)["title"]
        assert stored.all_uploads(IndexPaths(root)) == []
        assert await jobs_of(client) == []

    run(work, root, roots=(tmp_path,), limits=Limits(upload_files=2))


def test_only_the_owner_and_only_where_it_was_allowed(tmp_path: Path) -> None:
    job = "0" * 32

    async def refused(client: httpx.AsyncClient, words: str) -> None:
        for method, path in (
            ("POST", "/api/ingest"), ("GET", "/api/ingest"), ("GET", f"/api/ingest/{job}"),
            ("GET", f"/api/ingest/{job}/events"), ("DELETE", f"/api/ingest/{job}"),
        ):  # fmt: skip
            problem = is_problem(await client.request(method, path), 403)
            assert words in problem["title"]
            assert problem["hint"]

    for caller in (Principal("somebody", "t"), None):
        run(partial(refused, words="owner"), tmp_path / "index", caller=caller)
    run(partial(refused, words="does not ingest"), tmp_path / "index", allow_ingest=False)


def test_jobs_that_are_none(tmp_path: Path) -> None:
    async def work(client: httpx.AsyncClient) -> None:
        for method, path in (("GET", ""), ("GET", "/events"), ("DELETE", "")):
            is_problem(await client.request(method, f"/api/ingest/{'0' * 32}{path}"), 404)
            is_problem(await client.request(method, f"/api/ingest/short{path}"), 422)

    run(work, tmp_path / "index")


def test_a_line_that_is_full_and_jobs_that_are_cancelled(tmp_path: Path) -> None:
    root = tmp_path / "index"

    async def work(client: httpx.AsyncClient) -> None:
        first = (await client.post("/api/ingest", files=files(PDF))).json()
        while (await client.get(first["url"])).json()["state"] == "queued":
            await asyncio.sleep(0.01)
        second = (await client.post("/api/ingest", files=files(PDF + b"2"))).json()
        refused = await client.post("/api/ingest", files=files(PDF + b"3"))
        assert is_problem(refused, 429)["hint"]
        assert refused.headers["retry-after"] == "30"
        cancelled = await client.delete(second["url"])
        assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
        cancelled = await client.delete(first["url"])
        assert (cancelled.status_code, cancelled.json()["state"]) == (202, "running")
        assert (await done(client, first))["state"] == "cancelled"
        assert stored.all_uploads(IndexPaths(root)) == []

    run(work, root, never, limits=Limits(jobs=1))


def test_an_index_that_is_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "notes.txt").write_text("mine")

    async def work(client: httpx.AsyncClient) -> None:
        answer = await client.post("/api/ingest", files=files(PDF))
        assert answer.status_code in (422, 503)
        assert [path.name for path in root.iterdir()] == ["notes.txt"]

    run(work, root)


def test_a_client_that_goes_away_in_the_middle_leaves_nothing(tmp_path: Path, loopback: None) -> None:
    root = tmp_path / "index"
    with served_here(root, tmp_path, QUICK, start=lambda *_: never([]), allow_ingest=True) as server:
        token = {"Authorization": f"Bearer {server.token}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", headers=token, timeout=PATIENCE) as client:
            head = f"POST /api/ingest HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
            head += f"Authorization: Bearer {server.token}\r\n"
            head += "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 100000000\r\n\r\n"
            part = '--x\r\nContent-Disposition: form-data; name="files"; filename="a.pdf"\r\n\r\n%PDF'
            with socket.create_connection(("127.0.0.1", server.port)) as leaving:
                leaving.sendall(f"{head}{part}".encode() + bytes(3_000_000))
            assert client.get("/api/ingest").json()["jobs"] == []
            assert stored.all_uploads(IndexPaths(root)) == []
            # The server goes on, and so does whoever has more patience.
            answer = client.post("/api/ingest", files=files(PDF))
            assert answer.status_code == 202
            with client.stream("GET", answer.json()["events_url"]) as stream:
                assert next(stream.iter_lines()) == "event: job"
    assert [upload.name for upload in stored.waiting_uploads(IndexPaths(root))] == ["a.pdf"]
