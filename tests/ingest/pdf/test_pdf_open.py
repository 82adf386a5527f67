"""Opening: what is refused, with which word, and what is read all the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from ingest.jobs import Fault
from ingest.pdf.mupdf import raster
from ingest.pdf.reader import PdfReader
from research.errors import DocumentError


def make(path: Path, pages: int = 3, **save: Any) -> Path:
    document = pymupdf.open()
    for number in range(1, pages + 1):
        document.new_page().insert_text((72, 90), f"This is sheet {number} of the sample.")
    document.save(path, **save)
    return path


def code_of(path: Path) -> str:
    with pytest.raises(DocumentError) as caught, PdfReader(path) as reader:
        list(reader.pages())
    assert "\n" not in caught.value.message
    return caught.value.code


def test_what_is_no_pdf_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty.pdf").write_bytes(b"")
    assert code_of(tmp_path / "empty.pdf") == "empty"
    (tmp_path / "page.pdf").write_text("<html><body>no</body></html>")
    assert code_of(tmp_path / "page.pdf") == "not_a_pdf"
    for path in (tmp_path / "none.pdf", tmp_path, make(tmp_path / "a.pdf") / "b.pdf"):
        assert code_of(path) == "unreadable"
    whole = make(tmp_path / "a.pdf").read_bytes()
    (tmp_path / "b.pdf").write_bytes(whole.replace(b"/Count 3", b"/Count 2000000000"))
    assert code_of(tmp_path / "b.pdf") == "damaged", "two billion pages are not believed"


def test_neither_name_nor_junk_in_front_matter(tmp_path: Path) -> None:
    whole = make(tmp_path / "a.pdf").rename(tmp_path / "a.txt").read_bytes()
    (tmp_path / "b.pdf").write_bytes(b"\x00junk\n" * 50 + whole)
    for name in ("a.txt", "b.pdf"):
        with PdfReader(tmp_path / name) as reader:
            assert len(list(reader.pages())) == 3


def test_a_path_whose_bytes_are_no_text(tmp_path: Path) -> None:
    path = make(tmp_path / "a.pdf").rename(os.fsdecode(os.fsencode(tmp_path) + b"/-a\xff b.pdf"))
    with PdfReader(path) as reader:
        assert reader.num_pages == 3


def test_a_password(tmp_path: Path) -> None:
    kind = pymupdf.PDF_ENCRYPT_AES_256
    locked = make(tmp_path / "a.pdf", encryption=kind, user_pw="u", owner_pw="o")
    assert code_of(locked) == "encrypted"
    owner_only = make(tmp_path / "b.pdf", encryption=kind, owner_pw="o")
    with PdfReader(owner_only) as reader:
        assert [page.markdown for page in reader.pages()][2] == "This is sheet 3 of the sample."


def test_damage(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    whole = make(tmp_path / "a.pdf", pages=40).read_bytes()
    (tmp_path / "junk.pdf").write_bytes(b"%PDF-1.7\n" + bytes(range(256)) * 20)
    assert code_of(tmp_path / "junk.pdf") == "damaged"
    (tmp_path / "half.pdf").write_bytes(whole[: len(whole) // 2])
    assert code_of(tmp_path / "half.pdf") == "damaged"
    (tmp_path / "most.pdf").write_bytes(whole[:-300])  # its cross-reference table is gone
    with PdfReader(tmp_path / "most.pdf") as reader:
        assert [page.number for page in reader.pages()] == list(range(1, 41))
        assert reader.warnings == ["the PDF was damaged and has been repaired"]
    assert capfd.readouterr() == ("", "")


def test_a_broken_page_costs_that_page_only(tmp_path: Path) -> None:
    path = make(tmp_path / "a.pdf")
    document = pymupdf.open(path)
    document.update_object(document.page_xref(1), "<< /Type /Page /MediaBox (none) /Contents 999 0 R >>")
    (tmp_path / "b.pdf").write_bytes(document.tobytes())
    document.close()
    with PdfReader(tmp_path / "b.pdf") as reader:
        pages = list(reader.pages())
    assert [page.number for page in pages] == list(range(1, len(pages) + 1))
    assert "sheet 1" in pages[0].markdown


def with_empty_branch(path: Path, pages: int) -> Path:
    """A document whose page tree promises one page more than it holds: MuPDF fails on the last."""
    document = pymupdf.open(make(path, pages + 1))
    root = int(document.xref_get_key(document.pdf_catalog(), "Pages")[1].split()[0])
    branch = document.get_new_xref()
    document.update_object(branch, "<< /Type /Pages /Kids [] /Count 1 >>")
    kids = [document.page_xref(number) for number in range(pages)] + [branch]
    document.xref_set_key(root, "Kids", "[" + " ".join(f"{kid} 0 R" for kid in kids) + "]")
    path.write_bytes(document.tobytes())
    return path


def test_pages_that_fail_are_reported(tmp_path: Path) -> None:
    with PdfReader(with_empty_branch(tmp_path / "a.pdf", 2)) as reader:
        pages = list(reader.pages())
    assert [page.error for page in pages] == ["", "", "the page is damaged"]
    assert pages[2].markdown == "" and pages[2].number == 3
    assert reader.faults == {}
    assert code_of(with_empty_branch(tmp_path / "b.pdf", 0)) == "damaged"


@pytest.mark.parametrize(
    "slip",
    [
        "ingest.pdf.reader.extract_page",
        "ingest.pdf.mupdf._lines",
        "ingest.pdf.mupdf.find_drawings",
        "ingest.pdf.mupdf._DrawingDevice._count",
        "ingest.pdf.tables.find_grids",
        "ingest.pdf.compose.reading_order",
    ],
)
def test_a_slip_of_ours_is_never_the_files_fault(slip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = pymupdf.open()
    for _ in range(2):
        page: Any = document.new_page()
        page.insert_text((72, 90), "Words in a frame.")
        page.draw_rect((60, 60, 200, 120))
    document.save(tmp_path / "a.pdf")

    def slips(*_: object) -> None:
        {}["a key that is not there"]

    monkeypatch.setattr(slip, slips)
    told = ""
    with PdfReader(tmp_path / "a.pdf") as reader:
        try:
            pages = list(reader.pages())
        except Fault as error:
            told = error.trace
        else:
            assert [page.error for page in pages] == [fault.reason for fault in reader.faults.values()] != []
            told = reader.faults[1].trace
    assert "a key that is not there" in told and "in slips" in told


def test_a_slip_of_ours_around_drawing_is_not_a_page_that_cannot_be_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slips(*_: object) -> None:
        {}["a key that is not there"]

    monkeypatch.setattr("ingest.pdf.mupdf.placed", slips)
    with PdfReader(make(tmp_path / "a.pdf")) as reader, pytest.raises(KeyError):
        raster(reader.raw_page(1), longest=100)


def test_skip_and_progress(tmp_path: Path) -> None:
    heard: list[int] = []
    with PdfReader(make(tmp_path / "a.pdf")) as reader:
        pages = list(reader.pages(skip={2}, progress=heard.append))
    assert [bool(page.error) for page in pages] == [False, True, False]
    assert heard == [1, 2, 3, 1, 2, 3]


def test_labels_are_printed_numbers_are_physical(tmp_path: Path) -> None:
    document = pymupdf.open()
    for number in range(5):
        page = document.new_page()
        page.insert_text((72, 90), f"Body of sheet {number} here.")
        page.insert_text((300, 820), ["i", "ii", "1", "2", "3"][number])
    document.set_page_labels(
        [{"startpage": 0, "style": "r", "firstpagenum": 1}, {"startpage": 2, "style": "D", "firstpagenum": 1}]
    )
    document.save(tmp_path / "a.pdf")
    with PdfReader(tmp_path / "a.pdf") as reader:
        pages = list(reader.pages())
    assert [page.number for page in pages] == [1, 2, 3, 4, 5]
    assert [page.label for page in pages] == ["i", "ii", "1", "2", "3"]
    assert [page.markdown for page in pages] == [f"Body of sheet {n} here." for n in range(5)]
    document.xref_set_key(document.pdf_catalog(), "PageLabels", "<</Nums[0<</P<FEFF00310030>>>]>>")
    document.save(tmp_path / "b.pdf")
    with PdfReader(tmp_path / "b.pdf") as reader:
        assert next(iter(reader.pages())).label == "10", "a label in 16 bits a letter"


@pytest.mark.parametrize(
    ("given", "title"),
    [
        ("The Rivers of the North", "The Rivers of the North"),
        ("Microsoft Word - rivers.doc", "A large line"),
        ("untitled", "A large line"),
        ("Microsoft Word - Document1", "A large line"),
        ("Unbenannt-1", "A large line"),
        ("Sans titre", "A large line"),
        ("Präsentation1", "A large line"),
        ("无标题文档", "A large line"),
        ("Documento de trabajo 7", "Documento de trabajo 7"),
        ("rivers_final.indd", "A large line"),
        ("", "A large line"),
    ],
)
def test_title(tmp_path: Path, given: str, title: str) -> None:
    document = pymupdf.open()
    page = document.new_page()
    page.insert_text((72, 90), "A large line", fontsize=24)
    page.insert_text((72, 140), "and a smaller one below it.")
    document.set_metadata({"title": given})
    document.save(tmp_path / "a.pdf")
    with PdfReader(tmp_path / "a.pdf") as reader:
        list(reader.pages())
        assert reader.title == title


def test_the_version_loads_no_pdf_library() -> None:
    code = "import sys, ingest.pdf; sys.exit('pymupdf' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
