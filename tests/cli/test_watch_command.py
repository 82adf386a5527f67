"""ctx watch and ctx ingest --prune, as a person types them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from tests.conftest import MEASURE
from tests.in_process import Ran
from tests.network_guard import guarded

MakePdf = Callable[..., Path]


@contextmanager
def watching(folder: Path, *options: str, cwd: Path) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    command = guarded("-m", "cli.main", "watch", folder.name, "--index", str(cwd / "index"), *options)
    environment = {**os.environ, **MEASURE, "CTX_IMAGES": "no"}
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        while f"watching {folder.name}".encode() not in process.stderr.readline():
            assert process.poll() is None
        yield process, process.stdout
        if process.poll() is None:
            process.kill()


def document(stream: IO[bytes]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stream.readline())
    return found


def test_a_folder_is_followed_until_ctrl_c(make_pdf: MakePdf, tmp_path: Path) -> None:
    docs = make_pdf("walrus.pdf", ["The walrus has tusks"], tmp_path / "docs").parent
    (docs / "broken.pdf").write_text("no PDF at all")  # it is told, and stops nothing
    seal = make_pdf("seal.pdf", ["The seal sleeps on the ice"], tmp_path / "made")
    orca = make_pdf("orca.pdf", ["Orcas hunt in groups"], tmp_path / "made")
    with watching(docs, "--json", cwd=tmp_path) as (process, out):
        told = [document(out)]
        (docs / "walrus.pdf").rename(docs / "old walrus.pdf")
        shutil.copy(seal, docs / "seal.pdf")  # at once with the other: it has come to rest a second later
        told.append(document(out))
        shutil.copy(orca, docs / "old walrus.pdf")
        (docs / "seal.pdf").unlink()
        told.append(document(out))
        process.send_signal(signal.SIGINT)
        left, err = process.communicate(timeout=60)
    assert [{file["filename"]: file["result"] for file in run["files"]} for run in told] == [
        {"broken.pdf": "failed", "walrus.pdf": "added"},
        {"broken.pdf": "failed", "old walrus.pdf": "renamed", "seal.pdf": "added"},
        {"broken.pdf": "failed", "old walrus.pdf": "replaced"},
    ]
    assert [gone["filename"] for gone in told[2]["removed"]] == ["seal.pdf"]
    assert (process.returncode, left) == (0, b"")
    assert b"ctx: failed: " in err
    assert err.endswith(b"ctx: stopped watching\n")


def test_a_drive_that_goes_away_takes_nothing_with_it(make_pdf: MakePdf, tmp_path: Path, call) -> None:
    docs = make_pdf("walrus.pdf", ["The walrus has tusks"], tmp_path / "docs" / "drive").parent.parent
    with watching(docs, cwd=tmp_path) as (process, out):
        assert out.readline() == b"added 1\n"
        (docs / "drive").rename(tmp_path / "away")
        (docs / "drive").mkdir()
        assert process.stderr is not None
        assert b"is empty, as it is when a drive is not mounted" in process.stderr.readline()
        docs.rename(tmp_path / "all away")
        assert process.wait(timeout=60) == 1
        assert b"ctx: error: the folder is gone: docs" in process.stderr.readline()
    assert call("list", "--index", str(tmp_path / "index")).out.count("walrus.pdf") == 1


def test_the_first_file_comes_and_the_last_one_goes(make_pdf: MakePdf, tmp_path: Path) -> None:
    """Whoever watched it knows that it was emptied, and no drive was unmounted."""
    docs = tmp_path / "docs"
    docs.mkdir()
    with watching(docs, cwd=tmp_path) as (_, out):
        make_pdf("walrus.pdf", ["The walrus has tusks"], docs)
        assert out.readline() == b"added 1\n"
        (docs / "walrus.pdf").unlink()
        assert out.readline() == b"removed 1\n"


def test_with_keep_nothing_goes(make_pdf: MakePdf, tmp_path: Path) -> None:
    docs = make_pdf("walrus.pdf", ["The walrus has tusks"], tmp_path / "docs").parent
    with watching(docs, "--keep", "--poll", cwd=tmp_path) as (process, out):
        assert out.readline() == b"added 1\n"
        (docs / "walrus.pdf").unlink()
        assert process.stderr is not None
        assert b"1 file is gone" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        left, err = process.communicate(timeout=60)
    assert (process.returncode, left, err) == (0, b"", b"ctx: stopped watching\n")


def test_only_folders_are_followed(call: Callable[..., Ran], tmp_path: Path) -> None:
    ran = call("watch", str(tmp_path / "none"))
    assert (ran.code, ran.out) == (2, "")
    assert "not a folder" in ran.err


@pytest.mark.parametrize("prune", [False, True])
def test_ingest_tells_of_gone_files(
    call: Callable[..., Ran], copied: Path, tmp_path: Path, prune: bool, make_pdf: MakePdf
) -> None:
    docs = tmp_path / "docs"
    gone = make_pdf("gone.pdf", ["The walrus has tusks"], docs)
    make_pdf("there.pdf", ["The penguin cannot fly"], docs)
    at = ("ingest", str(docs), "--no-images", "--index", str(copied))
    assert call(*at).code == 0
    gone.unlink()
    ran = call(*at, *(["--prune"] if prune else []))
    assert ran.code == 0
    if prune:
        assert "unchanged 1, removed 1" in ran.out
        assert "gone" not in ran.err
    else:
        assert f"1 file is gone ({gone}); it will be found until you remove it: --prune" in ran.err


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
