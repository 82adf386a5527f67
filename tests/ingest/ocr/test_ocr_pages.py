from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from ocr_tools import FakeTesseract, draw, noisy, png, scan, skewed
from PIL import Image

from ingest.chunks import chunk_page
from ingest.ocr import Boxes, choose_engine, ocr_need
from ingest.ocr.engine import MAX_SIDE, OcrEngine, OcrLine
from ingest.ocr.page import OcrResult, Render, blocks_of, ocr_page, read_page, render
from ingest.ocr.tesseract import TesseractEngine
from ingest.pdf.reader import PdfReader
from research.records import Block, Box, FailedPage, Page

WHOLE: Boxes = ()
LETTER = [
    (40.0, 50.0, "The harbour closed in March 1962 after"),
    (40.0, 66.0, "forty ships were lost in one night of un-"),
    (40.0, 82.0, "expected storm."),
    (40.0, 120.0, "Nobody rebuilt the pier."),
]


class Told:
    """An engine that says what it was told to."""

    name = "told 1.0"
    page_side = 1000

    def __init__(self, *lines: tuple[Box, str]) -> None:
        self.lines = [OcrLine(text, box, 0.9) for box, text in lines]

    def read(self, image: Image.Image) -> list[OcrLine]:
        return self.lines


def shown(image: Image.Image) -> Render:
    """A page that looks like this."""
    return lambda box, longest: image


def read(path: Path, engine: OcrEngine, page: Page, need: Boxes = WHOLE) -> OcrResult | FailedPage:
    with PdfReader(path) as document:
        return ocr_page(page, need, document.raw_page(page.number), engine, lambda _: None)


def at(row: int, text: str, x: float = 0.1, *, height: float = 0.02) -> tuple[Box, str]:
    y = 0.1 + 0.025 * row
    return (x, y, x + 0.009 * len(text), y + height), text


def blocks(*lines: tuple[Box, str]) -> list[Block]:
    return blocks_of(Told(*lines).lines, (1000, 1000))


@pytest.mark.slow
def test_lines_become_paragraphs_and_words_whole(engine: OcrEngine) -> None:
    result = read_page(Page(3, ""), WHOLE, shown(draw(360, 150, LETTER)), engine)
    assert result.engine == engine.name
    first, second = result.page.markdown.split("\n\n")
    assert re.fullmatch(
        r"The harbour closed in March 1962 after forty ships were lost in one night of unexpected storm\.?", first
    )
    assert second.startswith("Nobody rebuilt the pier")
    assert [block.kind for block in result.page.blocks] == ["paragraph", "paragraph"]
    assert result.page.number == 3
    assert len(result.lines) == 4
    x0, y0, _, y1 = result.page.blocks[0].box
    assert (x0, y0) == pytest.approx((40 / 360, 40 / 150), abs=0.04)
    assert y1 == pytest.approx(84 / 150, abs=0.04)


@pytest.mark.slow
def test_a_table_keeps_its_rows_on_a_skewed_scan(engine: OcrEngine) -> None:
    exports = [
        ("Timber", "4,711", "5,208"),
        ("Wool", "1,962", "2,044"),
        ("Salt", "318", "907"),
        ("Stone", "2,750", "2,801"),
        ("Dried fish", "840", "1,225"),
    ]
    words = [(30.0, 40.0, "Exports of the harbour in tonnes, before and after the storm")]
    for row, cells in enumerate(exports):
        words += [(30.0 + 150 * column, 75.0 + 20 * row, cell) for column, cell in enumerate(cells)]
    image = noisy(skewed(draw(420, 180, words), 1.5), strength=10)
    result = read_page(Page(1, ""), WHOLE, shown(image), engine)
    title, table = result.page.markdown.split("\n\n")
    assert title == words[0][2]
    assert table.split("\n") == [" | ".join(cells) for cells in exports]
    assert result.page.num_tables == 1


@pytest.mark.slow
@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_a_page_scanned_on_its_side_is_turned(engine: OcrEngine, degrees: int) -> None:
    words = [(30.0, 40.0 + 17 * i, f"Ship number {i} carried timber, wool and salt to the islands") for i in range(6)]
    upright = draw(400, 200, words, scale=3)
    sideways = upright.rotate(degrees, expand=True)
    result = read_page(Page(1, ""), WHOLE, shown(sideways), engine)
    assert "Ship number 3 carried timber, wool and salt" in " ".join(result.page.markdown.split())
    line = next(line for line in result.lines if "number 0" in line.text)
    x, y = (line.box[0] + line.box[2]) / 2, (line.box[1] + line.box[3]) / 2
    expected = {90: (0.18, 0.5), 180: (0.5, 0.82), 270: (0.82, 0.5)}[degrees]
    assert (x, y) == pytest.approx(expected, abs=0.12)


def test_hyphens_are_joined_as_in_text_pages() -> None:
    joined = blocks(
        at(0, "a well-known word, and a fore-"),
        at(1, "casted storm of the well-"),
        at(2, "known kind in North-"),
        at(3, "West."),
    )
    assert joined[0].text == "a well-known word, and a forecasted storm of the well-known kind in North-West."


def test_what_looks_like_markdown_stays_text() -> None:
    assert blocks(at(0, "# 12 bolts per ship")) == [
        Block("paragraph", "\\# 12 bolts per ship", at(0, "# 12 bolts per ship")[0])
    ]


def test_lists_and_rows_are_told_apart() -> None:
    found = blocks(
        at(0, "• Timber from the north"),
        at(1, "• Wool from the islands"),
        at(8, "Timber"),
        at(8, "4,711", 0.6),
        at(9, "Wool"),
        at(9, "318", 0.6),
    )
    assert [block.kind for block in found] == ["list", "table"]
    assert found[0].text == "- Timber from the north\n- Wool from the islands"
    assert found[1].text == "Timber | 4,711\nWool | 318"


def test_nothing_read_leaves_the_page_as_it_was(engine: OcrEngine) -> None:
    page = Page(1, "12", blocks=(Block("paragraph", "12", (0.5, 0.9, 0.55, 0.95)), Block("picture", "", (0, 0, 1, 1))))
    result = read_page(page, WHOLE, shown(noisy(Image.new("L", (400, 300), 128), strength=40)), engine)
    assert result.page == page
    assert result.lines == ()


def test_pictures_stay_on_a_page_read_whole() -> None:
    page = Page(1, "", num_pictures=1, blocks=(Block("picture", "", (0, 0, 1, 1)),))
    read = read_page(page, WHOLE, shown(Image.new("L", (100, 100))), Told(at(0, "Harbour"))).page
    assert [block.kind for block in read.blocks] == ["picture", "paragraph"]
    assert (read.markdown, read.num_pictures) == ("Harbour", 1)


def page_with_picture(path: Path, *, caption: str = "") -> Page:
    """A page of prose with a picture of words in it, written and read back."""
    with pymupdf.open() as document:
        page: Any = document.new_page(width=600, height=800)
        page.insert_textbox((60, 40, 540, 200), "Reports of the harbour office follow in the order they came in. " * 5)
        picture = draw(300, 150, [(30, 40, "Timber exports 1961"), (30, 80, "4,711 tonnes")], size=16)
        page.insert_image((150, 300, 450, 450), stream=png(picture))
        if caption:
            page.insert_text((160, 330), caption, fontsize=10)
        page.insert_textbox((60, 500, 540, 700), "After the storm nothing was exported from here any more. " * 5)
        document.save(path)
    with PdfReader(path) as reader:
        return next(iter(reader.pages()))


def test_a_picture_on_a_text_page_gets_its_text_where_it_stands(engine: OcrEngine, tmp_path: Path) -> None:
    path = tmp_path / "mixed.pdf"
    page = page_with_picture(path)
    need = ocr_need(page)
    assert need
    result = read(path, engine, page, need)
    assert isinstance(result, OcrResult)
    first, picture, last = result.page.markdown.split("\n\n")
    assert picture.split() == ["Timber", "exports", "1961", "4,711", "tonnes"]
    assert first.startswith("Reports")
    assert last.startswith("After the storm")
    block = next(block for block in result.page.blocks if block.kind == "picture")
    assert block.text == picture
    assert result.lines[0].box == pytest.approx((0.3, 0.41, 0.55, 0.44), abs=0.04)
    assert "4,711" in "".join(
        chunk.text for chunk in chunk_page(result.page, title="", count=lambda text: len(text.split()))
    )


@pytest.mark.slow
def test_text_over_a_picture_is_not_added_again(engine: OcrEngine, tmp_path: Path) -> None:
    path = tmp_path / "over.pdf"
    page = page_with_picture(path, caption="Figure seven, from the archive")
    assert "Figure seven" in page.markdown
    need = ocr_need(page)
    assert need
    result = read(path, engine, page, need)
    assert isinstance(result, OcrResult)
    assert result.page.markdown.count("Figure seven") == 1
    assert "4,711" in result.page.markdown


def test_a_figure_that_also_stands_in_the_text_is_kept_in_its_picture() -> None:
    page = Page(
        1,
        "x",
        blocks=(
            Block("paragraph", "Exports of 4,711 tonnes in 1961", (0.1, 0.1, 0.9, 0.2)),
            Block("picture", "", (0, 0.5, 1, 1)),
        ),
    )
    need = ((0.0, 0.5, 1.0, 1.0),)
    told = Told(at(0, "1961"), at(4, "exports of 4,711 tonnes in 1961"))
    assert read_page(page, need, shown(Image.new("L", (100, 100))), told).page.blocks[1].text == "1961"


def test_a_scanned_page_is_read(engine: OcrEngine, tmp_path: Path) -> None:
    words = [draw(300, 100, [(20, 50, text)], size=16) for text in ("Harbour master", "Timber exports")]
    path = scan(tmp_path / "scan.pdf", [words[0], Image.new("L", (300, 100), 255), words[1]], width=300, height=100)
    with PdfReader(path) as reader:
        pages = list(reader.pages())
    assert [ocr_need(page) for page in pages] == [WHOLE] * 3
    results = [read(path, engine, page) for page in pages]
    assert [result.page.markdown for result in results if isinstance(result, OcrResult)] == [
        "Harbour master",
        "",
        "Timber exports",
    ]


@pytest.mark.parametrize(
    ("script", "failure"),
    [
        ("cat > /dev/null; exit 3", FailedPage(1, "ocr", "ocr_failed", "tesseract failed: exit code 3")),
        ("sleep 30", FailedPage(1, "ocr", "timeout", "tesseract took more than 0.3 seconds", tries=2)),
        ("kill -9 $$", FailedPage(1, "ocr", "killed", "tesseract was killed by signal 9", tries=2)),
        ('if [ -e "{once}" ]; then exit 0; fi; : > "{once}"; kill -9 $$', None),
    ],
    ids=["fails", "hangs", "killed", "killed once"],
)
def test_an_engine_that_fails_costs_its_page(
    fake_tesseract: FakeTesseract, tmp_path: Path, script: str, failure: FailedPage | None
) -> None:
    """One that was killed, or took too long, is tried once more."""
    fake_tesseract.write(script.replace("{once}", f"{tmp_path}/once"))
    path = scan(tmp_path / "scan.pdf", [draw(300, 100, [(20, 50, "Harbour master")])], width=300, height=100)
    result = read(path, TesseractEngine(seconds=0.3), Page(1, ""))
    assert result == (failure or OcrResult(Page(1, ""), (), "tesseract 5.9.9"))


def test_a_page_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    path = scan(tmp_path / "scan.pdf", [Image.new("L", (30, 30), 255)])
    failure = FailedPage(9, "ocr", "ocr_failed", "the page cannot be rendered")
    assert read(path, choose_engine("rapidocr"), Page(9, "")) == failure


@pytest.mark.parametrize("size", [(1, 1), (10**9, 10**9), (10**9, 1), (3, 14400), (0.01, 0.01)])
def test_pages_of_any_size_are_rendered_within_bounds(size: tuple[float, float], tmp_path: Path) -> None:
    path = tmp_path / "odd.pdf"
    with pymupdf.open() as document:
        page: Any = document.new_page()
        document.xref_set_key(page.xref, "MediaBox", f"[0 0 {size[0]} {size[1]}]")
        document.save(path)
    engine = choose_engine("rapidocr")
    with pymupdf.open(path) as document:
        image = render(document[0], None, 2000)
        part = render(document[0], (0.25, 0.25, 0.5, 0.5), 10**9)
        assert max(image.size) <= 2002
        assert max(part.size) <= MAX_SIDE + 2
    result = read(path, engine, Page(1, ""))
    assert isinstance(result, OcrResult)
    assert result.page == Page(1, "")


def test_a_part_of_a_turned_page_is_where_it_is_seen() -> None:
    with pymupdf.open() as document:
        page: Any = document.new_page(width=200, height=100)
        page.draw_rect((0, 0, 50, 50), color=0, fill=0)
        page.set_rotation(90)  # what was at the top left is now at the top right
        assert render(page, (0.55, 0.05, 0.95, 0.2), 50).getextrema()[1] < 30  # type: ignore[operator]
        assert render(page, (0.05, 0.05, 0.45, 0.2), 50).getextrema()[0] > 220  # type: ignore[operator]
