"""ctx watch and ctx ingest --prune, as a person types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.conftest import MEASURE
from tests.in_process import Ran
from tests.network_guard import guarded

MakePdf = Callable[..., Path]


# The command, with a tenth of a second instead of a second for files to come to rest.
HASTY = """
import sys, ingest.scan
from cli.main import run_and_leave
ingest.scan._SETTLE_MS = 100
run_and_leave(sys.argv[1:])
"""


class Watching:
    """`ctx watch` in a process of its own. How many changes it takes in a run is its own affair: tests wait for what
    it tells in the end."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.process, self.out, self.err = process, process.stdout, process.stderr
        self.results: dict[str, set[str]] = {}

    def until(self, stream: IO[bytes], words: str) -> None:
        """Read lines until one has these words."""
        while words.encode() not in (line := stream.readline()):
            assert line, f"it ended before it told: {words}"

    def until_told(self, filename: str, result: str) -> None:
        """Read documents until one tells this of a file; collects what they tell."""
        while result not in self.results.get(filename, ()):
            document = json.loads(self.out.readline())
            for file in document["files"]:
                self.results.setdefault(file["filename"], set()).add(file["result"])
            for gone in document["removed"]:
                self.results.setdefault(gone["filename"], set()).add("removed")

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """It sees what is done in this block as one change."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)
        yield
        self.process.send_signal(signal.SIGCONT)


@contextmanager
def watching(folder: Path, *options: str, cwd: Path) -> Iterator[Watching]:
    command = guarded("-c", HASTY, "watch", folder.name, "--index", str(cwd / "index"), *options)
    environment = {**os.environ, **MEASURE, "CTX_IMAGES": "no"}
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        try:
            watched = Watching(process)
            watched.until(watched.err, f"watching {folder.name}")
            yield watched
        finally:
            process.kill()


def test_a_folder_is_followed_until_ctrl_c(make_pdf: MakePdf, tmp_path: Path) -> None:
    docs = make_pdf("walrus.pdf", ["The walrus has tusks"], tmp_path / "docs").parent
    (docs / "broken.pdf").write_text("no PDF at all")  # it is told, and stops nothing
    seal = make_pdf("seal.pdf", ["The seal sleeps on the ice"], tmp_path / "made")
    orca = make_pdf("orca.pdf", ["Orcas hunt in groups"], tmp_path / "made")
    with watching(docs, "--json", cwd=tmp_path) as watched:
        watched.until_told("walrus.pdf", "added")
        (docs / "walrus.pdf").rename(docs / "old walrus.pdf")
        seal.rename(docs / "seal.pdf")
        watched.until_told("old walrus.pdf", "renamed")
        watched.until_told("seal.pdf", "added")
        orca.rename(docs / "old walrus.pdf")
        (docs / "seal.pdf").unlink()
        watched.until_told("old walrus.pdf", "replaced")
        watched.until_told("seal.pdf", "removed")
        watched.process.send_signal(signal.SIGINT)
        _, err = watched.process.communicate()
    assert {name: told - {"unchanged"} for name, told in watched.results.items()} == {
        "broken.pdf": {"failed"},
        "walrus.pdf": {"added"},
        "old walrus.pdf": {"renamed", "replaced"},
        "seal.pdf": {"added", "removed"},
    }
    assert watched.process.returncode == 0
    assert err.endswith(b"ctx: stopped watching\n")


@pytest.mark.slow
def test_what_goes_is_removed_but_not_with_a_drive(make_pdf: MakePdf, tmp_path: Path, call) -> None:
    """Whoever watched a folder knows that it was emptied; an empty folder in its place is a drive that is unmounted."""
    walrus = make_pdf("walrus.pdf", ["The walrus has tusks"], tmp_path / "made")
    docs, drive = tmp_path / "docs", tmp_path / "docs" / "drive"
    drive.mkdir(parents=True)
    with watching(docs, cwd=tmp_path) as watched:
        walrus.rename(drive / "walrus.pdf")
        watched.until(watched.out, "added 1\n")
        (drive / "walrus.pdf").rename(walrus)
        watched.until(watched.out, "removed 1\n")
        walrus.rename(drive / "walrus.pdf")
        watched.until(watched.out, "added 1\n")
        with watched.stopped():
            drive.rename(tmp_path / "away")
            drive.mkdir()
        watched.until(watched.err, "is empty, as it is when a drive is not mounted")
        docs.rename(tmp_path / "all away")
        watched.until(watched.err, "ctx: error: the folder is gone: docs")
        assert watched.process.wait() == 1
    assert call("list", "--index", str(tmp_path / "index")).out.count("walrus.pdf") == 1


@pytest.mark.slow
def test_with_keep_nothing_goes(make_pdf: MakePdf, tmp_path: Path) -> None:
    docs = make_pdf("walrus.pdf", ["The walrus has tusks"], tmp_path / "docs").parent
    with watching(docs, "--keep", "--poll", cwd=tmp_path) as watched:
        watched.until(watched.out, "added 1\n")
        (docs / "walrus.pdf").unlink()
        watched.until(watched.err, "1 file is gone")
        watched.process.send_signal(signal.SIGTERM)
        left, err = watched.process.communicate()
    assert (watched.process.returncode, left, err) == (0, b"", b"ctx: stopped watching\n")


def test_only_folders_are_followed(call: Callable[..., Ran], tmp_path: Path) -> None:
    ran = call("watch", str(tmp_path / "none"))
    assert (ran.code, ran.out) == (2, "")
    assert "not a folder" in ran.err


@pytest.mark.slow
def test_ingest_tells_of_gone_files(call: Callable[..., Ran], copied: Path, tmp_path: Path, make_pdf: MakePdf) -> None:
    docs = tmp_path / "docs"
    gone = make_pdf("gone.pdf", ["The walrus has tusks"], docs)
    make_pdf("there.pdf", ["The penguin cannot fly"], docs)
    at = ("ingest", str(docs), "--no-images", "--index", str(copied))
    assert call(*at).code == 0
    gone.unlink()
    ran = call(*at)
    assert ran.code == 0
    assert f"1 file is gone ({gone}); it will be found until you remove it: --prune" in ran.err
    ran = call(*at, "--prune")
    assert ran.code == 0
    assert "unchanged 1, removed 1" in ran.out
    assert "gone" not in ran.err


def test_ingest_tells_which_folders_it_does_not_prune(
    call: Callable[..., Ran], copied: Path, tmp_path: Path, make_pdf: MakePdf
) -> None:
    gone = make_pdf("gone.pdf", ["The walrus has tusks"], tmp_path / "docs")
    at = ("ingest", str(gone.parent), "--no-images", "--prune", "--index", str(copied))
    assert call(*at).code == 0
    gone.unlink()
    ran = call(*at)
    assert (ran.code, "nothing to do" in ran.out) == (0, True)
    assert f"{gone.parent} is empty, as it is when a drive is not mounted" in ran.err
    told = call(*at, "--json").document
    assert (told["gone"], told["removed"], told["empty_folders"]) == ([str(gone)], [], [str(gone.parent)])
    remedy = ran.err.partition("ctx remove ")[2].partition(")")[0].strip("'")
    assert call("remove", remedy, "--index", str(copied)).out.startswith("removed\tgone.pdf\t")
