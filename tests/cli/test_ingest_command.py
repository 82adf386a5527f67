"""ctx ingest: what it says and how it ends. What it does to the index is tested with `ingest`."""

from __future__ import annotations

import os
import re
import threading
import time
from pathlib import Path

import pytest

from research.store import IndexPaths, write_lock
from tests.conftest import MakePdf

EVIL = "-evil\n[bold]\x1b[31m.pdf"


@pytest.fixture
def shelf(tmp_path: Path, make_pdf) -> Path:
    """Two sound files and one that is none, with a name to match."""
    folder = tmp_path / "shelf"
    make_pdf("banks.pdf", ["The housing bubble burst in 2008.", "Stress tests followed."], folder)
    make_pdf("garden.pdf", ["Tomatoes need sun and water."], folder)
    (folder / EVIL).write_bytes(b"no PDF at all")
    return folder


def test_a_folder_from_the_first_run_to_the_answer(call, shelf: Path, tmp_path: Path) -> None:
    index = str(tmp_path / "index")
    first = call("ingest", str(shelf), "--index", index)
    assert first.code == 4, first.err
    counts, figures = first.out.splitlines()
    assert counts == "added 2, failed 1"
    assert re.match(r"3 pages, \d+ chunks, [\d.]+ s, [\d.]+ pages/s$", figures)
    assert first.err.count(f"ctx: failed: {shelf}/-evil\\n[bold]\\x1b[31m.pdf: ") == 1
    assert "ctx: error: 1 of 3 files failed; the others are in the index" in first.err

    answer = call("ask", "what burst", "--json", "--index", index)
    assert (answer.document["sources"][0]["filename"], answer.document["sources"][0]["page"]) == ("banks.pdf", 1)

    (shelf / EVIL).unlink()
    again = call("ingest", str(shelf), "--json", "--index", index)
    assert again.code == 0, again.err
    assert again.document["schema"] == "ctx.ingest/2"
    assert (again.document["unchanged"], again.document["added"], again.document["pages"]) == (2, 0, 0)
    assert len(again.document["files"]) == 2


def test_on_a_terminal_there_is_a_bar(on_terminal, shelf: Path, tmp_path: Path) -> None:
    ran = on_terminal(["ingest", str(shelf), "--index", str(tmp_path / "index")], columns=120)
    assert ran.code == 4
    for word in ("read ", "embed ", "publish ", "3/3 files", " chunks"):
        assert word in ran.out
    assert "\x1b[31m.pdf" not in ran.out
    assert "added 2, failed 1\n" in ran.out
    assert ran.out.count("ctx: failed: ") == 1


def test_paths_that_lead_nowhere(call, tmp_path: Path) -> None:
    index = str(tmp_path / "index")
    missing = call("ingest", str(tmp_path / "nope"), "--json", "--index", index)
    assert missing.code == 2
    assert "no such file or folder" in missing.document["error"]
    (tmp_path / "empty").mkdir()
    empty = call("ingest", str(tmp_path / "empty"), "--index", index)
    assert empty.code == 3
    assert "no PDF files in" in empty.err
    assert not Path(index).exists()


def test_a_second_ingest_names_the_first(call, shelf: Path, tmp_path: Path) -> None:
    paths = IndexPaths(tmp_path / "index")
    paths.create()
    with write_lock(paths):
        ran = call("ingest", str(shelf), "--wait", "0.1", "--json", "--index", str(paths.root))
    assert ran.code == 1
    assert f"process {os.getpid()} is writing this index" in ran.document["error"]
    assert "--wait" in ran.document["hint"]


@pytest.fixture
def mixed(tmp_path: Path, make_pdf: MakePdf) -> Path:
    """A file that is read with a warning, its copy, and one that is no PDF under a name of two lines."""
    folder = tmp_path / "mixed"
    first = make_pdf("a.pdf", ["Boats in the harbour.", ""], folder)
    (folder / "copy.pdf").write_bytes(first.read_bytes())
    (folder / "b\n.pdf").write_bytes(b"no PDF at all")
    return folder


def test_a_log_hears_failures_and_warnings_one_line_each(call, mixed: Path, tmp_path: Path) -> None:
    ran = call("ingest", str(mixed), "--ocr", "off", "--index", str(tmp_path / "index"))
    assert ran.code == 4
    warning = f"warning: {mixed}/a.pdf: pages without a text layer: 1 of 2 (OCR is off)"
    failure = rf"failed: {mixed}/b\n.pdf: "
    said = ran.err.splitlines()
    assert [sum(line.startswith(f"ctx: {start}") for line in said) for start in (warning, failure)] == [1, 1]
    added, figures = ran.out.splitlines()
    assert added == "added 1, copies 1, failed 1"
    assert figures.startswith("2 pages, 1 chunk, ")


def test_files_of_other_kinds_are_told_in_a_line(call, mixed: Path, tmp_path: Path) -> None:
    for number, kind in enumerate(("docx", "docx", "docx", "md", "md", "txt", "png", "html", "csv", "xls", "ods")):
        (mixed / f"{number}.{kind}").touch()
    where = ("--ocr", "off", "--no-images", "--index", str(tmp_path / "index"))
    ran = call("ingest", str(mixed), "--json", *where)
    named = ".docx 3, .md 2, .csv 1, .html 1, .ods 1, .png 1"
    assert ran.err.count(f"ctx: passed over 11: {named}, other 2\n") == 1
    assert list(ran.document["passed_over"].items())[:3] == [(".docx", 3), (".md", 2), (".csv", 1)]
    assert "passed over" not in call("ingest", str(mixed), "--quiet", *where).err


def test_quiet_tells_failures_only(call, mixed: Path, tmp_path: Path) -> None:
    ran = call("ingest", str(mixed), "--ocr", "off", "--quiet", "--index", str(tmp_path / "index"))
    assert ran.out == ""
    assert "warning" not in ran.err
    assert rf"ctx: failed: {mixed}/b\n.pdf" in ran.err


def test_a_link_that_leads_nowhere_is_named(call, make_pdf: MakePdf, tmp_path: Path) -> None:
    folder = make_pdf("a.pdf", ["Boats in the harbour."], tmp_path / "docs").parent
    (folder / "gone.pdf").symlink_to(tmp_path / "nothing")
    where = ("--no-images", "--index", str(tmp_path / "index"))
    ran = call("ingest", str(folder), "--json", *where)
    assert (ran.code, ran.document["dangling_links"]) == (0, [f"{folder}/gone.pdf"])
    assert f"warning: links lead nowhere ({folder}/gone.pdf)\n" in call("ingest", str(folder), *where).err


@pytest.mark.slow
def test_a_second_ingest_waits_for_the_first(
    call, make_pdf: MakePdf, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    paths, document = IndexPaths(tmp_path / "index"), make_pdf("a.pdf", ["Boats in the harbour."])
    paths.create()
    held = threading.Event()

    def hold() -> None:
        with write_lock(paths):
            held.set()
            while "not acquired" not in caplog.text:  # until the other has come
                time.sleep(0.01)

    caplog.set_level("DEBUG", "filelock")
    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    ran = call("ingest", str(document), "--wait", "--json", "--index", str(paths.root))
    holder.join()
    assert (ran.code, ran.document["added"]) == (0, 1)


def test_a_model_that_is_none_costs_the_visual_side_only(call, make_pdf: MakePdf, tmp_path: Path) -> None:
    make_pdf("a.pdf", ["The walrus has tusks."], tmp_path / "docs")
    (tmp_path / "nomodel").mkdir()
    where = ("--index", str(tmp_path / "index"))
    ran = call(
        "ingest", str(tmp_path / "docs"), "--visual", str(tmp_path / "nomodel"), "--ocr", "off", "--json", *where
    )
    assert ran.code == 1
    assert ran.document["added"] == 1
    assert "is no model" in ran.document["visual_error"]
    assert "ctx: error: the visual side was left as it was" in ran.err
    asked = call("ask", "What has tusks?", "--json", *where)
    assert asked.code == 0
    assert asked.document["sources"][0]["filename"] == "a.pdf"
    visual = next(leg for leg in asked.document["coverage"]["legs"] if leg["name"] == "visual")
    assert visual["status"] == "off"
    status = call("status", "--json", *where).document
    assert status["visual_encoder"] == ""
