"""Uploads: names that are not trusted, bodies of all kinds, and what becomes of a file when its job ends as it may."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from ingest import start_job
from research.errors import ProblemError
from research.service.jobs import Job, JobRunner
from research.service.service import Limits
from research.service.uploads import NAMELESS, Uploads, safe_name
from research.settings import Settings
from research.store import Catalog, IndexPaths, files
from research.store import files as stored
from tests.conftest import write_pdf
from tests.research.service.serving_app import wait_for
from tests.soak.running import PATIENCE

BOUNDARY = "frontier"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"
PDF = b"%PDF-1.7 not much of one"


@pytest.mark.parametrize(
    ("given_name", "safe"),
    [
        ("report.pdf", "report.pdf"),
        ("../../x.pdf", "x.pdf"),
        ("C:\\Users\\me\\x.pdf", "x.pdf"),
        ("C:x.pdf", "C_x.pdf"),
        ("/etc/passwd", "passwd.pdf"),
        ("", NAMELESS),
        (".pdf", NAMELESS),
        (".hidden.pdf", "hidden.pdf"),
        ("--index=x.pdf", "index=x.pdf"),
        ("a\r\nSet-Cookie: b.pdf", "aSet-Cookie_ b.pdf"),
        ("evil\u202efdp.exe", "evilfdp.exe.pdf"),
        ("half \ud800 a character.pdf", "half a character.pdf"),
        ("annual  \t report .pdf", "annual report.pdf"),
        ("what?*<now>|\"'.pdf", "what__" + "_now___'.pdf"),
        ("COM1.txt.pdf", "_COM1.txt.pdf"),
        ("年度報告.pdf", "年度報告.pdf"),
    ],
)
def test_names_are_made_safe(given_name: str, safe: str) -> None:
    assert safe_name(given_name) == safe


@given(st.text(max_size=400) | st.text(min_size=200, max_size=6000))
def test_every_name_becomes_one_that_a_disk_takes(given_name: str) -> None:
    name = safe_name(given_name)
    assert name.endswith(".pdf")
    assert len(name.encode()) <= 200
    assert name == name.strip()
    assert name[0] not in ".-"
    assert not set(name) & set('/\\:*?"<>|\0\n\r\t\u202e')
    assert safe_name(name) == name


# Starlette leaves the temporary file of a part that has no end to the garbage collector.
unclosed = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def paths(tmp_path: Path) -> IndexPaths:
    return IndexPaths(tmp_path / "index")


def part(content: bytes, name: str | None = "a.pdf", field: str = "files") -> bytes:
    filename = "" if name is None else f'; filename="{name}"'
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{field}"{filename}\r\n\r\n'
    return head.encode("utf-8", "surrogatepass") + content + b"\r\n"


END = f"--{BOUNDARY}--\r\n".encode()


def receive(paths: IndexPaths, body: bytes, *, step: int = 1 << 16, limits: Limits | None = None) -> list[files.Upload]:
    return asyncio.run(Uploads(paths, JobRunner(never), limits).receive(request_of(body, step)))


def request_of(body: bytes, step: int = 1 << 16, content_type: str = TYPE) -> Request:
    pieces = [body[start : start + step] for start in range(0, len(body), step)]

    async def incoming() -> Any:
        piece = pieces.pop(0) if pieces else b""
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    headers = [(b"content-type", content_type.encode("latin-1"))]
    return Request({"type": "http", "method": "POST", "headers": headers}, incoming)


def refused(paths: IndexPaths, body: bytes, **more: Any) -> tuple[int, str]:
    with pytest.raises(ProblemError) as caught:
        receive(paths, body, **more)
    assert not paths.uploads.exists() or list(paths.uploads.iterdir()) == [], "nothing is half left"
    return caught.value.problem.status, caught.value.problem.title


@pytest.mark.parametrize("step", [1, 7, 1 << 16])
def test_files_are_taken_from_a_body_however_it_comes_in_pieces(paths: IndexPaths, step: int) -> None:
    second = b"junk before\r\n--front %PDF-1.4" + bytes(range(256)) * 40 + f"\r\n--{BOUNDARY[:-1]}".encode()
    body = part(PDF, "../../first.pdf") + part(b"by me", None, "comment") + part(second, "zweites Dokument.pdf") + END
    got = receive(paths, body, step=step)
    assert [(upload.name, upload.path.read_bytes()) for upload in got] == [
        ("first.pdf", PDF),
        ("zweites Dokument.pdf", second),
    ]
    assert all(upload.path.is_relative_to(paths.uploads) for upload in got)


@unclosed
def test_what_is_no_upload_is_refused_and_leaves_nothing(paths: IndexPaths) -> None:
    assert refused(paths, part(b"<html>no PDF</html>") + END) == (415, "A file is no PDF")
    assert refused(paths, part(PDF, "good.pdf") + part(b"x" * 20_000, "bad.pdf") + part(PDF) + END)[0] == 415
    assert refused(paths, part(b"x" * 9000 + PDF) + END)[0] == 415, "a header comes early"
    assert refused(paths, part(b"", "empty.pdf") + END)[0] == 415
    assert refused(paths, part(b"", "") + END)[0] == 422, "a form without a chosen file"
    assert refused(paths, part(PDF, "a.pdf", "file") + END)[0] == 422, "another field"
    assert refused(paths, END)[0] == 422
    for odd in (b"no multipart at all", b"--other\r\n\r\nx\r\n--other--", b"\0" * 1000):
        assert refused(paths, odd)[0] == 400
    for cut_off in (b"", part(PDF), part(PDF)[:-10]):
        assert refused(paths, cut_off)[0] in (400, 422)
    assert refused(paths, f"--{BOUNDARY}\r\nContent-Disposition: {'x' * 100_000}\r\n\r\n".encode())[0] == 400
    assert refused(paths, f"--{BOUNDARY}\r\nbad header\r\n\r\nx\r\n".encode() + END)[0] == 400
    small = Limits(upload_files=2)
    assert refused(paths, (part(PDF + b"1") + part(PDF + b"2") + part(PDF + b"3")) + END, limits=small)[0] == 413
    assert refused(paths, part(b"", None, "x") * 30 + END)[0] == 413


@unclosed
@given(st.binary(max_size=400), st.integers(1, 50))
def test_any_bytes_at_all_are_an_upload_or_a_clear_refusal(body: bytes, step: int) -> None:
    for whole in (body, part(body) + END, part(PDF)[: len(body)] + body):
        try:
            receive(IndexPaths(Path(os.environ["HOME"]) / "fuzzed"), whole, step=step)
        except ProblemError as error:
            assert error.problem.status in (400, 413, 415, 422)


_FULL = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_service_uploads import IndexPaths, ProblemError, receive
paths = IndexPaths(Path(sys.argv[1]))
try:
    receive(paths, sys.stdin.buffer.read())
except ProblemError as error:
    print(error.problem.status, error.problem.title, bool(error.problem.hint), list(paths.uploads.iterdir()))
"""


def test_a_full_disk(paths: IndexPaths) -> None:
    body = part(PDF, "small.pdf") + part(PDF + bytes(200_000), "large.pdf") + part(PDF) + END
    done = subprocess.run(
        [sys.executable, "-c", _FULL, str(paths.root), str(Path(__file__).parent)],
        input=body,
        capture_output=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert done.stdout == b"507 The disk is full True []\n", done.stderr


class Served:
    """What a server holds: uploads and their jobs."""

    def __init__(self, paths: IndexPaths, start: Any = None) -> None:
        self.paths = paths
        self.jobs = JobRunner(start or partial(start_job, paths.root, Settings(ocr="off", images=False)))
        self.uploads = Uploads(paths, self.jobs)

    def send(self, *contents: tuple[str, bytes]) -> Job:
        body = b"".join(part(content, name) for name, content in contents) + END
        with self.jobs.reserved():
            return self.uploads.submit(receive(self.paths, body))

    def ended(self, job: Job) -> dict[str, Any]:
        wait_for(lambda: job.ended)
        return self.jobs.document(job)

    def stop(self) -> None:
        self.jobs.stop(PATIENCE)


def names(paths: IndexPaths) -> list[str]:
    with Catalog(paths) as catalog:
        return sorted(document.filename for document in catalog.documents.all())


@pytest.fixture
def served(paths: IndexPaths) -> Iterator[Served]:
    made = Served(paths)
    yield made
    made.stop()


def real_pdf(folder: Path, text: str) -> bytes:
    return write_pdf(folder / "sent.pdf", [text]).read_bytes()


def outcome_of(code: str) -> Callable[[Sequence[Path]], subprocess.Popen[bytes]]:
    """Starts a real process that says of every file that it failed, and why."""
    script = (
        "import json, sys\nfor path in sys.argv[2:]:\n"
        "    said = {'source_path': path, 'result': 'failed', 'code': sys.argv[1], 'reason': 'because'}\n"
        "    print(json.dumps({'event': 'file', **said}))\n"
        "print(json.dumps({'event': 'done', 'summary': {'interrupted': False}}))"
    )

    def start(paths: Sequence[Path]) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-S", "-c", script, code, *map(str, paths)], stdout=subprocess.PIPE)

    return start


@pytest.mark.parametrize(
    ("code", "kept", "waits"),
    [("damaged", False, False), ("timeout", True, False), ("internal", True, False), ("killed", True, True)],
)
def test_what_becomes_of_a_file_that_fails_depends_on_why(
    paths: IndexPaths, code: str, kept: bool, waits: bool
) -> None:
    served = Served(paths, outcome_of(code))
    assert served.ended(served.send(("a.pdf", PDF)))["files"][0]["reason"] == "because"
    left = stored.left_uploads(paths, set())
    assert [(each.waiting, each.reason) for each in left] == ([(waits, "" if waits else "because")] if kept else [])
    served.stop()


def never(paths: Sequence[Path]) -> subprocess.Popen[bytes]:
    """A process that works on and on, and hears a signal as a real one does that has not begun."""
    return subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"], stdout=subprocess.PIPE)


_KILLED = """
import sys, time
sys.path.insert(0, sys.argv[2])
from test_service_uploads import IndexPaths, Path, Served
served = Served(IndexPaths(Path(sys.argv[1])))
served.send(*((f"{number}.pdf", Path(name).read_bytes()) for number, name in enumerate(sys.argv[3:])))
print("accepted", flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_what_was_accepted_outlasts_a_server_that_is_killed(paths: IndexPaths, tmp_path: Path) -> None:
    pdfs = [write_pdf(tmp_path / f"{number}.pdf", [f"Walrus number {number}"]) for number in range(3)]
    command = [sys.executable, "-c", _KILLED, str(paths.root), str(Path(__file__).parent), *map(str, pdfs)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"accepted\n"
        server.kill()
    after = Served(paths)
    assert {after.ended(job)["state"] for job in after.uploads.resume()} == {"done"}
    assert names(paths) == ["0.pdf", "1.pdf", "2.pdf"]
    assert stored.waiting_uploads(paths) == []
    after.stop()


def broken_off(paths: Sequence[Path]) -> subprocess.Popen[bytes]:
    script = "import os; os.kill(os.getpid(), 9)"
    return subprocess.Popen([sys.executable, "-S", "-c", script], stdout=subprocess.PIPE)


def test_a_file_that_ends_its_process_waits_for_the_next_start_by_itself(paths: IndexPaths) -> None:
    served = Served(paths, broken_off)
    assert served.ended(served.send(("bad.pdf", PDF), ("worse.pdf", PDF + b"2")))["state"] == "failed"
    again = served.uploads.resume()
    assert [[file["name"] for file in served.ended(job)["files"]] for job in again] == [["bad.pdf"], ["worse.pdf"]]
    served.stop()


@pytest.mark.slow
def test_a_cancelled_upload_is_gone_unless_it_is_in_the_index_or_in_another_job(
    paths: IndexPaths, tmp_path: Path
) -> None:
    known = real_pdf(tmp_path, "The walrus has tusks.")
    first = Served(paths)
    first.ended(first.send(("known.pdf", known)))
    first.stop()
    served = Served(paths, never)
    running = served.send(("one.pdf", PDF), ("known.pdf", known))
    queued, twice = served.send(("two.pdf", PDF + b"2")), served.send(("one.pdf", PDF))
    served.jobs.cancel(queued.id)
    assert [upload.name for upload in stored.all_uploads(paths)].count("two.pdf") == 0
    served.jobs.cancel(running.id)
    assert served.ended(running)["state"] == "cancelled"
    assert {upload.name for upload in stored.waiting_uploads(paths)} == {"one.pdf"}
    served.jobs.cancel(twice.id)
    served.ended(twice)
    assert [upload.name for upload in stored.all_uploads(paths)] == ["known.pdf"]
    assert stored.waiting_uploads(paths) == []
    served.stop()


def test_a_server_that_stops_takes_nothing_more(served: Served) -> None:
    received = receive(served.paths, part(PDF) + END)
    served.jobs.begin_stop()
    with pytest.raises(ProblemError) as refusal:
        served.uploads.submit(received)
    assert refusal.value.problem.status == 503
    assert stored.all_uploads(served.paths) == []


def test_resuming_where_there_is_no_index_or_it_cannot_be_read(tmp_path: Path) -> None:
    served = Served(IndexPaths(tmp_path / "nowhere"))
    assert served.uploads.resume() == []
    (tmp_path / "file").touch()
    odd = Served(IndexPaths(tmp_path / "file" / "below"))
    assert odd.uploads.resume() == []
    served.stop()
    odd.stop()
