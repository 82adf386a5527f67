"""Reading processes that are killed, crash, hang or meet a mistake of ours: what it costs, and what is told of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pymupdf
import pytest
from faulty import FaultyCtx, make_faulty

from research.store import Catalog, IndexPaths
from tests.conftest import write_pdf
from tests.in_process import Ran, run_in_process
from tests.ingest.test_stages import scan

TEXTS = ["The walrus has tusks.", "The penguin cannot fly.", "The heron stands in the reeds.", "The otter swims."]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_faulty(tmp_path_factory.mktemp("faulty") / "home")


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture
def ctx(home: Path, index: Path) -> FaultyCtx:
    return FaultyCtx(home, index)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A document of four pages, the third a scan, and one of a single page."""
    folder = tmp_path / "docs"
    path = write_pdf(folder / "animals.pdf", TEXTS[:2])
    with pymupdf.open(path) as document, pymupdf.open() as written:
        page: Any = written.new_page(width=420, height=160)
        page.insert_textbox(pymupdf.Rect(30, 30, 400, 150), TEXTS[2], fontsize=22)
        document.new_page(width=420, height=160).insert_image(page.rect, pixmap=page.get_pixmap(dpi=110))
        document.new_page().insert_text((72, 90), TEXTS[3])
        document.saveIncr()
    write_pdf(folder / "single.pdf", ["One page alone."])
    return folder


def ingest(ctx: FaultyCtx, docs: Path, *options: str) -> Ran:
    said = ctx.run("ingest", str(docs), "--ocr-engine", "tesseract", "--json", *options)
    assert "Traceback" not in said.err, said.err
    return said


TEXT_ALONE = ("--no-images", "--ocr", "off")  # where only reading is to die


def failures(said: Ran, part: str = "failed_pages") -> list[tuple[str, int, str, str]]:
    return [(Path(p["source_path"]).name, p["page"], p["stage"], p["code"]) for p in said.document[part]]


def assert_whole(ctx: FaultyCtx, index: Path) -> None:
    """Every page has its text and its image, nothing is given up, and doctor finds nothing."""
    assert_complete(index)
    checks = ctx.run("doctor", "--json").document["checks"]
    assert [check for check in checks if check["severity"] != "ok"] == []


def assert_complete(index: Path) -> None:
    with Catalog(IndexPaths(index)) as catalog:
        rows = catalog.execute("SELECT doc_id, page, error, image, needs_ocr FROM pages").fetchall()
        found = {text for doc_id in {row[0] for row in rows} for _, text in catalog.pages.document_markdown(doc_id)}
    assert [tuple(row[2:]) for row in rows] == [("", 1, 0)] * 5
    assert all(any(word in text for text in found) for word in ("walrus", "penguin", "reeds", "otter", "alone"))
    assert run_in_process("status", "--json", "--index", str(index)).document["given_up"] == []


# A page of animals.pdf for each stage to stumble over, and how that is told.
PLACES = ("read_2", "ocr_3", "images_4")


def told(code: str) -> list[tuple[str, int, str, str]]:
    return [("animals.pdf", 2, "read", code), ("animals.pdf", 3, "ocr", code), ("animals.pdf", 4, "images", code)]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill once", "hang once"])  # `make soak` has the other ways to die
def test_processes_that_die_once_cost_nothing(ctx: FaultyCtx, docs: Path, index: Path, how: str) -> None:
    ctx.set(**dict.fromkeys(PLACES, how))
    said = ingest(ctx, docs)
    assert (said.code, failures(said), ctx.met()) == (0, [], 3), said.err
    assert_complete(index)


def test_pages_that_were_killed_are_named_and_tried_again(ctx: FaultyCtx, docs: Path, index: Path) -> None:
    ctx.set(**dict.fromkeys(PLACES, "kill"))
    said = ingest(ctx, docs)
    assert (said.code, sorted(failures(said)), ctx.met()) == (4, told("killed"), 6)
    killed = "the reading process was killed (SIGKILL)\n"
    for place in ("page 2: ", "page 3: OCR: ", "page 4: drawing it: "):
        assert f"ctx: given up: {docs}/animals.pdf, {place}{killed}" in said.err
    assert texts(index) == [TEXTS[0], "", "", TEXTS[3]]
    ctx.clear()
    mended = ingest(ctx, docs, *TEXT_ALONE)
    assert (mended.code, failures(mended)) == (0, [])
    assert texts(index) == [*TEXTS[:2], "", TEXTS[3]]


def texts(index: Path) -> list[str]:
    """The pages of animals.pdf as the index has them."""
    with Catalog(IndexPaths(index)) as catalog:
        [document] = [document for document in catalog.documents.all() if document.filename == "animals.pdf"]
        return [text for _, text in catalog.pages.document_markdown(document.doc_id)]


@pytest.mark.slow
def test_what_was_given_up_is_told_everywhere_until_it_is_mended(ctx: FaultyCtx, docs: Path, index: Path) -> None:
    ctx.set(**dict.fromkeys(PLACES, "kill"))
    said = ingest(ctx, docs)
    assert "3 pages (animals.pdf p. 2, animals.pdf p. 4, animals.pdf p. 3) given up; the rest" in said.err
    assert f"hint: what was killed is tried again by: ctx ingest {docs}" in said.err
    places = "3 pages (animals.pdf p. 2, animals.pdf p. 3, animals.pdf p. 4)"
    assert f"given up     {places}; try again with: ctx ingest PATH\n" in ctx.run("status").out
    noted = ctx.run("status", "--json").document["given_up"]
    assert [(page["page"], page["stage"], page["code"]) for page in noted] == [place[1:] for place in told("killed")]
    [check] = [c for c in ctx.run("doctor", "--json").document["checks"] if c["name"] == "given up"]
    assert (check["severity"], check["remedy"]) == ("warn", "try again with: ctx ingest PATH")
    assert check["message"].startswith(places)

    ctx.clear()
    ctx.set(read_2="kill")
    again = ingest(ctx, docs)
    assert failures(again) == told("killed")[:1], "killed again, told again; the other stages are mended"
    ctx.clear()
    mended = ingest(ctx, docs)
    assert (mended.code, failures(mended), failures(mended, "waiting_pages")) == (0, [], []), mended.err
    assert (mended.document["replaced"], mended.document["unchanged"]) == (1, 1)
    assert_whole(ctx, index)
    assert ingest(ctx, docs).document["unchanged"] == 2


@pytest.mark.slow
def test_a_page_that_crashes_is_tried_in_two_runs_and_then_waits(ctx: FaultyCtx, docs: Path) -> None:
    ctx.set(read_2="crash")
    for tries in (2, 4):
        said = ingest(ctx, docs, *TEXT_ALONE)
        assert (said.code, ctx.met()) == (4, tries)
        assert said.document["failed_pages"][0]["reason"] == "the PDF library crashed on it (SIGSEGV)"
    waiting = ingest(ctx, docs, *TEXT_ALONE)
    assert (waiting.code, ctx.met(), failures(waiting, "waiting_pages")) == (
        0,
        4,
        [("animals.pdf", 2, "read", "crashed")],
    )


@pytest.mark.slow
def test_mistakes_of_ours_are_told_as_ours(ctx: FaultyCtx, docs: Path, index: Path) -> None:
    ctx.set(**dict.fromkeys(PLACES, "bug"))
    said = ingest(ctx, docs)
    assert (said.code, ctx.met()) == (4, 3), "each would do the same again"
    assert sorted(failures(said)) == told("internal")
    reasons = {page["reason"] for page in said.document["failed_pages"]}
    assert reasons == {"a bug in ctx, not in the file: KeyError: 'a key that is not there'"}
    assert f"please report it with the log of: ctx ingest {docs} --index {index} --retry --log-file" in said.err
    assert "crashed" not in said.err
    assert "damaged" not in said.err
    assert ingest(ctx, docs).code == 0
    assert ctx.met() == 3
    log = index.with_name("ctx.log")
    shown = ctx.run("--debug", "ingest", str(docs), "--ocr-engine", "tesseract", "--retry", "--log-file", str(log))
    assert shown.code == 4
    for page in (2, 3, 4):
        assert f"ctx: log: {docs}/animals.pdf, page {page}: a bug in ctx, not in the file: KeyError" in shown.err
    assert shown.err.count("Traceback (most recent call last):") == 3
    assert "in trap\n" in shown.err
    logged = log.read_text()
    assert logged.count(": given up: internal\n    Traceback (most recent call last):\n") == 3
    assert logged.count("in trap\n") == logged.count("builtins.KeyError\n") == 3
    assert "KeyError: " not in logged, "its message may quote the document"
    ctx.clear()
    assert ingest(ctx, docs, "--retry").code == 0
    assert_whole(ctx, index)


def test_a_mistake_of_ours_on_the_only_page_fails_the_file_as_ours(ctx: FaultyCtx, docs: Path) -> None:
    ctx.set(read_1="bug")
    said = ingest(ctx, docs / "single.pdf", *TEXT_ALONE)
    [file] = said.document["files"]
    assert (said.code, file["result"], file["code"]) == (4, "failed", "internal")
    assert file["reason"].startswith("a bug in ctx, not in the file: KeyError")
    assert "this is a bug in ctx, please report it" in said.err


@pytest.mark.slow
def test_a_document_that_cannot_be_rendered_is_told_and_not_tried_in_every_run(ctx: FaultyCtx, docs: Path) -> None:
    """Whatever the reason: here it takes more memory than a document may."""
    ctx.set(images_4="memory")
    said = ingest(ctx, docs / "animals.pdf", "--ocr", "off")
    assert (said.code, said.document["added"]) == (4, 1)
    assert failures(said) == [("animals.pdf", 0, "images", "too_large")]
    assert f"ctx: given up: {docs}/animals.pdf: drawing it: needs more memory than a document may take\n" in said.err
    met = ctx.met()
    later = ingest(ctx, docs / "animals.pdf", "--ocr", "off")
    assert (later.code, failures(later), ctx.met()) == (0, [], met), "not tried"
    assert failures(later, "waiting_pages") == [("animals.pdf", 0, "images", "too_large")]
    ctx.clear()
    retried = ingest(ctx, docs / "animals.pdf", "--ocr", "off", "--retry")
    assert (retried.code, failures(retried, "waiting_pages")) == (0, []), retried.err


@pytest.mark.slow
def test_pages_that_ocr_fails_on_are_told_with_how_many_it_read(ctx: FaultyCtx, tmp_path: Path) -> None:
    path = scan(tmp_path / "letter.pdf", ["The harbour fee is 42 euros.", "Boats over ten metres pay double."])
    ctx.set(ocr_2="bug")
    said = ingest(ctx, path, "--no-images")
    warning = "pages that need OCR: 2, of which it read 1"
    assert said.document["files"][0]["warnings"] == [warning]
    assert said.err.count(f"ctx: warning: {path}: {warning}\n") == 1
    ctx.clear()
    assert ingest(ctx, path, "--no-images", "--retry").document["files"][0]["warnings"] == []


@pytest.mark.slow
def test_a_mistake_of_ours_on_many_pages_costs_only_those(ctx: FaultyCtx, tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "long.pdf", [f"Page {n}" for n in range(1, 9)])
    ctx.set(**{f"read_{page}": "bug" for page in range(2, 8)})
    said = ingest(ctx, path, *TEXT_ALONE)
    assert (said.code, said.document["added"], len(said.document["failed_pages"])) == (4, 1, 6)


@pytest.mark.slow
def test_four_pages_that_die_cost_the_document_until_the_next_run(ctx: FaultyCtx, tmp_path: Path, index: Path) -> None:
    path = write_pdf(tmp_path / "long.pdf", [f"Page {n}" for n in range(1, 9)])
    ctx.set(**{f"read_{page}": "kill" for page in range(2, 6)})
    said = ingest(ctx, path, *TEXT_ALONE)
    assert (said.code, said.document["files"][0]["code"], ctx.met()) == (4, "killed", 8)
    ctx.clear()
    assert ingest(ctx, path, *TEXT_ALONE).code == 0


@pytest.mark.slow
def test_a_copy_keeps_its_name_when_the_document_is_read_again(ctx: FaultyCtx, docs: Path, index: Path) -> None:
    copy = docs.with_name("elsewhere") / "copy.pdf"
    copy.parent.mkdir()
    copy.write_bytes((docs / "animals.pdf").read_bytes())
    ctx.set(read_2="kill")
    ctx.run("ingest", str(docs), str(copy), "--ocr", "off")
    ctx.clear()
    assert ingest(ctx, copy, "--ocr", "off").document["replaced"] == 1
    assert "animals.pdf" in ctx.run("list").out, "it still goes by its first name"
    assert ingest(ctx, docs, "--ocr", "off").document["unchanged"] == 2


@pytest.mark.slow
def test_pages_that_hung_twice_wait_for_retry(ctx: FaultyCtx, docs: Path, index: Path) -> None:
    ctx.set(**dict.fromkeys(PLACES, "hang"))
    said = ingest(ctx, docs)
    assert (said.code, ctx.met()) == (4, 6)
    assert sorted(failures(said)) == told("timeout")
    assert f"for: ctx ingest {docs} --index {index} --retry" in said.err
    later = ingest(ctx, docs)
    assert (later.code, later.document["unchanged"], failures(later)) == (0, 2, [])
    assert failures(later, "waiting_pages") == told("timeout")
    assert ctx.met() == 6, "none was tried"
    assert "ctx ingest PATH --retry" in ctx.run("status").out
    assert "animals.pdf p. 4) given up earlier, not tried in this run" in ctx.run("ingest", str(docs)).err

    ctx.clear()
    mended = ingest(ctx, docs, "--retry")
    assert (mended.code, failures(mended, "waiting_pages")) == (0, []), mended.err
    assert_whole(ctx, index)


@pytest.mark.slow
def test_what_waits_goes_on_waiting_while_another_page_is_tried_again(ctx: FaultyCtx, docs: Path, index: Path) -> None:
    ctx.set(read_1="kill", read_2="hang", ocr_3="hang")
    said = ingest(ctx, docs / "animals.pdf")
    assert sorted(failures(said)) == [
        ("animals.pdf", 1, "read", "killed"),
        ("animals.pdf", 2, "read", "timeout"),
        ("animals.pdf", 3, "ocr", "timeout"),
    ]
    ctx.clear()
    ctx.set(read_2="hang", ocr_3="hang")
    again = ingest(ctx, docs / "animals.pdf")
    assert (again.code, again.document["replaced"], ctx.met()) == (0, 1, 0)
    assert failures(again, "waiting_pages") == [
        ("animals.pdf", 2, "read", "timeout"),
        ("animals.pdf", 3, "ocr", "timeout"),
    ]
    with Catalog(IndexPaths(index)) as catalog:
        errors = [row[0] for row in catalog.execute("SELECT error FROM pages ORDER BY page")]
    assert errors == ["", "the page was skipped", "OCR failed: a page took more than 0.3 seconds", ""]


@pytest.mark.slow
def test_a_file_that_hangs_as_a_whole_costs_its_time_once(ctx: FaultyCtx, docs: Path, index: Path) -> None:
    path = docs / "single.pdf"
    ctx.set(read_1="hang")
    said = ingest(ctx, path, *TEXT_ALONE)
    assert (said.code, said.document["files"][0]["code"], ctx.met()) == (4, "timeout", 2)
    later = ingest(ctx, path, *TEXT_ALONE)
    assert (later.code, later.document["files"][0]["code"], ctx.met()) == (4, "timeout", 2), "not tried"
    assert "it was not tried again" in later.err
    assert "given up     1 file (single.pdf); try again with: ctx ingest PATH --retry\n" in ctx.run("status").out
    ctx.set(read_1="hang once")
    retried = ingest(ctx, path, "--retry", *TEXT_ALONE)
    assert (retried.code, retried.document["added"], ctx.met()) == (0, 1, 3), retried.err
    assert ctx.run("status", "--json").document["given_up"] == []


def test_a_file_that_hung_is_tried_again_once_it_changes(ctx: FaultyCtx, docs: Path) -> None:
    path = docs / "single.pdf"
    ctx.set(read_1="hang")
    assert ingest(ctx, path, *TEXT_ALONE).code == 4
    ctx.clear()
    write_pdf(path, ["Another page."])
    assert ingest(ctx, path, *TEXT_ALONE).code == 0
    assert ctx.run("status", "--json").document["given_up"] == []
