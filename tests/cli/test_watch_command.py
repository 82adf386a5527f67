"""ctx watch and ctx ingest --prune, as a person types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.in_process import Ran

MakePdf = Callable[..., Path]


def test_a_folder_is_followed_until_ctrl_c(make_pdf: MakePdf, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    command = [sys.executable, "-m", "cli.main", "watch", "docs", "--json", "--index", str(tmp_path / "index")]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "CTX_IMAGES": "no"}
    ) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert b"watching docs" in watching.stderr.readline()
        time.sleep(0.3)  # the system is asked to tell after the line is out
        (docs / "walrus.pdf").write_bytes(make_pdf("made.pdf", ["The walrus has tusks"]).read_bytes())
        added = json.loads(watching.stdout.readline())
        (docs / "walrus.pdf").unlink()
        removed = json.loads(watching.stdout.readline())
        watching.send_signal(signal.SIGINT)
        out, err = watching.communicate(timeout=60)
    assert (added["added"], [file["filename"] for file in added["files"]]) == (1, ["walrus.pdf"])
    assert [document["filename"] for document in removed["removed"]] == ["walrus.pdf"]
    assert (watching.returncode, out, err) == (0, b"", b"ctx: stopped watching\n")


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
