"""Jobs of a server: one at a time, in line, followed by many, cancelled and stopped in good order."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ingest import start_job
from research.errors import ProblemError
from research.observe import NAME
from research.service.jobs import Job, JobRunner, StartJob
from research.settings import Settings
from tests.research.service.serving_app import wait_for
from tests.soak.contents import assert_whole
from tests.soak.corpus import make_corpus
from tests.soak.running import PATIENCE, assert_ended, descendants

QUICK = Settings(ocr="off", images=False)

_SAY = """
import json, signal, sys, time
def say(event, **more):
    print(json.dumps({"event": event, **more}), flush=True)
def done(interrupted=False):
    say("done", summary={"interrupted": interrupted})
def until_told_to_end():
    def end(*_):
        done(True)
        sys.exit()
    signal.signal(signal.SIGTERM, end)
    say("progress", stage="read", done=1, total=2)
    time.sleep(600)
"""


def speaking(script: str) -> StartJob:
    """Starts a real process that says what an ingest would; a real ingest takes seconds."""

    def start(paths: Sequence[Path]) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-S", "-E", "-c", _SAY + script, *map(str, paths)]
        return subprocess.Popen(command, stdout=subprocess.PIPE)

    return start


Run = Callable[..., JobRunner]


@pytest.fixture
def runner() -> Iterator[Run]:
    made: list[JobRunner] = []

    def make(start: StartJob | str, **options: Any) -> JobRunner:
        made.append(JobRunner(speaking(start) if isinstance(start, str) else start, **options))
        return made[-1]

    yield make
    for each in made:
        each.stop(10)


def submit(jobs: JobRunner, *paths: str | Path, **more: Any) -> Job:
    return jobs.submit(Job(tuple(Path(path) for path in paths), **more))


def ended(jobs: JobRunner, job: Job) -> dict[str, Any]:
    wait_for(lambda: job.ended)
    return jobs.document(job)


def followed(jobs: JobRunner, job: Job) -> list[tuple[str, dict[str, Any]]]:
    async def read() -> list[tuple[str, dict[str, Any]]]:
        return [event async for event in jobs.follow(job.id) if event is not None]

    return asyncio.run(read())


def test_one_runs_and_the_others_wait_up_to_a_bound(tmp_path: Path, runner: Run) -> None:
    gate = tmp_path / "gate"
    script = "import os\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)\ndone()"
    jobs = runner(script, most_waiting=2)
    first = submit(jobs, gate)
    wait_for(lambda: first.state == "running")
    second = submit(jobs, gate)
    with jobs.reserved():
        with pytest.raises(ProblemError) as refused:
            submit(jobs, gate)
        with pytest.raises(ProblemError), jobs.reserved():
            pass
        third = jobs.submit(Job((gate,)), reserved=True)
    assert (refused.value.problem.status, refused.value.problem.headers["Retry-After"]) == (429, "30")
    assert [document["state"] for document in jobs.documents()] == ["queued", "queued", "running"]
    gate.touch()
    assert [ended(jobs, job)["state"] for job in (first, second, third)] == ["done"] * 3
    assert jobs.documents()[0]["id"] == third.id, "the newest first"


def test_old_jobs_are_forgotten(runner: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.service.jobs._KEPT", 3)
    jobs = runner("done()")
    made = []
    for _ in range(5):
        made.append(submit(jobs))
        ended(jobs, made[-1])
    assert [document["id"] for document in jobs.documents()] == [job.id for job in reversed(made[2:])]
    with pytest.raises(ProblemError) as missing:
        jobs.get(made[0].id)
    assert missing.value.problem.status == 404


def test_a_job_in_line_is_cancelled_at_once_and_one_in_work_in_good_order(runner: Run) -> None:
    jobs = runner("until_told_to_end()")
    heard: list[str] = []
    first = submit(jobs, on_end=lambda job, state: heard.append(state))
    second = submit(jobs, on_end=lambda job, state: heard.append(state))
    wait_for(lambda: first.progress["stage"] == "read")
    assert jobs.document(jobs.cancel(second.id))["state"] == "cancelled"
    assert jobs.cancel(first.id) is first
    jobs.cancel(first.id)
    assert ended(jobs, first)["state"] == "cancelled"
    assert ended(jobs, first)["ended_at"]
    jobs.cancel(first.id)
    assert heard == ["cancelled", "cancelled"]
    third = submit(jobs)
    wait_for(lambda: third.progress["stage"] == "read")


def test_a_process_that_breaks_off_is_told_and_the_next_one_runs(runner: Run) -> None:
    jobs = runner("import os\nsay('file', source_path='/x/y.pdf', result='added')\nos.kill(os.getpid(), 9)")
    job = submit(jobs)
    document = ended(jobs, job)
    assert document["state"] == "failed"
    assert document["problem"]["detail"] == "its process was ended by signal 9"
    assert document["problem"]["hint"]
    assert ended(jobs, submit(jobs))["state"] == "failed"
    coded = runner("sys.exit(3)")
    assert ended(coded, submit(coded))["problem"]["detail"] == "its process ended with code 3"


def test_what_stops_an_ingest_is_told_in_its_own_words(runner: Run) -> None:
    jobs = runner("say('failed', error='the disk is full', hint='free some space', kind='IndexUnusableError')")
    problem = ended(jobs, submit(jobs))["problem"]
    assert (problem["detail"], problem["hint"], problem["status"]) == ("the disk is full", "free some space", 503)


def test_a_process_that_cannot_start_is_told(runner: Run) -> None:
    def start(paths: Sequence[Path]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(["/no/such/program"])

    jobs = runner(start)
    document = ended(jobs, submit(jobs))
    assert (document["state"], document["problem"]["title"]) == ("failed", "The ingest cannot start")

    def broken(*_: object) -> None:
        raise ValueError("a mistake of ours")

    fine = runner("done()")
    assert ended(fine, submit(fine, on_end=broken))["state"] == "done", "and its mistake harms nobody"


def test_nonsense_of_a_process_harms_nothing_and_its_log_is_ours(runner: Run, caplog: pytest.LogCaptureFixture) -> None:
    script = """
print("no json")
print("[1, 2]")
print('{"no": "event"}')
say("file")
say("never heard of")
say("log", logger="ctx.ingest", level=40, message="given up", full="given up: the words")
say("log", logger="other", level=40, message="not ours", full="")
done()
"""
    jobs = runner(script)
    with caplog.at_level(logging.INFO, logger=NAME):
        assert ended(jobs, submit(jobs))["state"] == "done"
    assert ("ctx.ingest", logging.ERROR, "given up") in caplog.record_tuples
    assert "not ours" not in caplog.text


def test_stopping_ends_streams_at_once_and_the_job_in_good_order(runner: Run) -> None:
    jobs = runner("until_told_to_end()")
    first, second = submit(jobs), submit(jobs)
    wait_for(lambda: first.progress["stage"] == "read")

    async def follow_and_stop() -> list[str]:
        names = []
        async for event in jobs.follow(first.id):
            assert event is not None
            names.append(event[0])
            if len(names) == 1:
                jobs.begin_stop()
        return names

    assert asyncio.run(follow_and_stop())[0] == "job"
    jobs.stop(PATIENCE)
    assert [ended(jobs, job)["state"] for job in (first, second)] == ["interrupted", "interrupted"]
    for way in (lambda: submit(jobs), lambda: jobs.submit(Job(()), reserved=True), lambda: jobs.reserved().__enter__()):
        with pytest.raises(ProblemError) as refused:
            way()
        assert refused.value.problem.status == 503


def test_a_process_that_does_not_hear_is_killed_in_the_end(runner: Run) -> None:
    jobs = runner("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nsay('note', message='deaf')\ntime.sleep(600)")
    job = submit(jobs)
    wait_for(lambda: job.note == "deaf")
    jobs.stop(0.1)
    assert ended(jobs, job)["state"] == "interrupted"
    runner("done()").stop(1)  # one that has never worked


def test_many_follow_and_a_slow_one_is_not_waited_for(tmp_path: Path, runner: Run) -> None:
    gate = tmp_path / "gate"
    script = f"""
import os
while not os.path.exists(sys.argv[1]): time.sleep(0.01)
for number in range(2000):
    say("progress", stage="read", done=number, total=2000)
    say("file", source_path=f"/x/{{number}}.pdf", result="added")
done()
open({str(tmp_path / "said")!r}, "w").close()
"""
    jobs = runner(script)
    job = submit(jobs, gate)

    async def read() -> list[tuple[str, dict[str, Any]]]:
        slow = jobs.follow(job.id)
        first = await anext(slow)
        assert first is not None
        assert first[1]["state"] in ("queued", "running")
        quick = [asyncio.create_task(_all(jobs, job)) for _ in range(5)]
        await asyncio.sleep(0)
        gate.touch()
        for task in quick:
            assert (await task)[-1][0] == "done"
        return [event async for event in slow if event is not None]

    late = asyncio.run(read())
    assert [name for name, _ in late].count("progress") <= 1, "of progress only the latest"
    assert len(late) <= 202
    assert late[-1][0] == "done"


async def _all(jobs: JobRunner, job: Job) -> list[tuple[str, dict[str, Any]]]:
    return [event async for event in jobs.follow(job.id) if event is not None]


def test_a_silent_job_gives_a_sign_of_life(runner: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("research.service.jobs._ALIVE_SECONDS", 0.01)
    jobs = runner("until_told_to_end()")
    job = submit(jobs)
    wait_for(lambda: job.progress["stage"] == "read")

    async def read() -> None:
        first = jobs.follow(job.id)
        await anext(first)
        assert await anext(first) is None, "a sign of life"
        await first.aclose()  # type: ignore[attr-defined]

    asyncio.run(read())


@pytest.mark.slow
def test_a_real_ingest_is_killed_in_the_middle_and_the_next_goes_on(tmp_path: Path, runner: Run) -> None:
    docs, root = make_corpus(tmp_path / "docs", 16), tmp_path / "index"
    jobs = runner(partial(start_job, root, QUICK))
    job = submit(jobs, docs)
    wait_for(lambda: any(name == "file" for _, name, _ in list(job.events)))
    process = jobs._process
    assert process is not None
    family = descendants(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    assert ended(jobs, job)["problem"]["type"] == "urn:ctx:problem:ingest-broken"
    assert_ended(family)
    kept = assert_whole(root)
    summary = ended(jobs, submit(jobs, docs))["summary"]
    assert (summary["unchanged"], summary["added"]) == (kept, 16 - kept)


_SERVER = """
import sys, time
from functools import partial
from pathlib import Path
from ingest.server_job import start_job
from research.service.jobs import Job
from research.service.jobs import JobRunner
from research.settings import Settings
jobs = JobRunner(partial(start_job, Path(sys.argv[2]), Settings(ocr="off", images=False)))
job = jobs.submit(Job((Path(sys.argv[1]),)))
while not job.events or job.state != "running" or not job.progress["stage"]:
    time.sleep(0.01)
print("working", flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_an_ingest_dies_with_its_server(tmp_path: Path) -> None:
    docs, root = make_corpus(tmp_path / "docs", 30), tmp_path / "index"
    with subprocess.Popen([sys.executable, "-c", _SERVER, str(docs), str(root)], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"working\n"
        family = descendants(server.pid)
        server.kill()
    assert family
    assert_ended(family)
