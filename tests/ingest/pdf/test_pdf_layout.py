"""Order, paragraphs, running lines, rotation, and that nothing is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from pdf_tools import PROSE, add_lines, wrapped

from ingest.pdf.reader import PdfReader
from research.records import Page

Read = Callable[..., list[Page]]


def test_columns_are_read_one_after_the_other(read: Read) -> None:
    left = wrapped("LEFT " + PROSE * 3, 44)
    right = wrapped("RIGHT " + PROSE.replace("river", "road") * 3, 44)

    def draw(document: Any) -> None:
        page = document.new_page()
        page.insert_text((72, 80), "A title across both columns of the page here", fontsize=20)
        # Row by row, so that the content stream's own order is the wrong one.
        for index in range(max(len(left), len(right))):
            for x, side in ((60, left), (320, right)):
                if index < len(side):
                    page.insert_text((x, 130 + index * 14), side[index], fontsize=10)

    text = read(draw)[0].markdown
    assert text.index("# A title") < text.index("LEFT") < text.index("RIGHT")
    assert " ".join(left) in text and " ".join(right) in text


def test_three_columns(read: Read) -> None:
    columns = [wrapped(f"COLUMN{n} " + PROSE * 2, 28) for n in range(3)]

    def draw(document: Any) -> None:
        page = document.new_page()
        for index in range(max(map(len, columns))):
            for n, column in enumerate(columns):
                if index < len(column):
                    page.insert_text((50 + n * 180, 80 + index * 13), column[index], fontsize=10)

    text = read(draw)[0].markdown
    assert [text.index(f"COLUMN{n}") for n in range(3)] == sorted(text.index(f"COLUMN{n}") for n in range(3))
    assert " ".join(text.split()) == " ".join(" ".join(column) for column in columns)


def test_paragraphs_part_at_gaps(read: Read) -> None:
    def draw(document: Any) -> None:
        y = add_lines(document.new_page(), 72, 90, wrapped("First. " + PROSE, 80))
        add_lines(document[0], 72, y + 12, wrapped("Second. " + PROSE, 80))

    paragraphs = read(draw)[0].markdown.split("\n\n")
    assert [text.split(".")[0] for text in paragraphs] == ["First", "Second"]


def test_running_lines_go_and_first_words_stay(read: Read) -> None:
    def draw(document: Any) -> None:
        for number in range(1, 9):
            page = document.new_page()
            page.insert_text((72, 40), f"Annual Report 2021, page {number}", fontsize=9)
            page.insert_text((72, 120), f"Sheet {number} speaks of subject number {number * 7}.", fontsize=11)
            page.insert_text((72, 800), "Confidential and proprietary", fontsize=9)
            page.insert_text((300, 815), str(number + 20), fontsize=9)

    first, *rest = read(draw)
    # What a document says of itself, whether it is confidential, stays where it is said first.
    assert first.markdown == "Sheet 1 speaks of subject number 7.\n\nConfidential and proprietary"
    assert [page.markdown for page in rest] == [f"Sheet {n} speaks of subject number {n * 7}." for n in range(2, 9)]


def test_a_chapters_own_head_beside_the_page_number_goes(read: Read) -> None:
    def draw(document: Any) -> None:
        for number in range(1, 21):
            page = document.new_page()
            page.insert_text((72, 40), f"On {('rivers', 'lakes', 'springs', 'ponds')[number // 6]}", fontsize=9)
            page.insert_text((500, 40), str(number + 4), fontsize=9)
            add_lines(page, 72, 200, wrapped(f"Sheet {number}. " + PROSE, 80))

    pages = read(draw)
    assert all(page.markdown.startswith("Sheet") for page in pages)


def test_labels_of_a_drawing_are_gathered(read: Read) -> None:
    def draw(document: Any) -> None:
        page = document.new_page()
        for index, name in enumerate(["Harbour", "Mill Street", "N", "E", "S", "Old Bridge"]):
            page.insert_text((72 + 60 * (index % 2), 100 + 70 * index), name)

    page = read(draw)[0]
    assert page.markdown == "Harbour\nMill Street\nN E S\nOld Bridge"
    assert len(page.blocks) == 1


def test_text_drawn_twice_is_written_once(read: Read) -> None:
    def draw(document: Any) -> None:
        page = document.new_page()
        page.insert_text((72, 100), "A shadowed line of words.")
        page.insert_text((72.4, 100.4), "A shadowed line of words.")

    assert read(draw)[0].markdown == "A shadowed line of words."


def test_text_boxes_side_by_side_stay_whole(read: Read) -> None:
    boxes = {
        (72, 160): ["Our first promise is", "to keep the water clean."],
        (330, 166): ["Our second promise is", "to say what it costs."],
        (72, 240): ["Our third promise is to come when called, by day and by night, and to leave no mess."],
    }

    def draw(document: Any) -> None:
        page = document.new_page()
        page.insert_text((72, 80), "What we promise to all of the people of the town and its villages")
        for place, lines in boxes.items():
            page.insert_text(place, lines)

    paragraphs = read(draw)[0].markdown.split("\n\n")
    assert paragraphs[1:] == [" ".join(lines) for lines in boxes.values()]


def test_cells_of_text_in_step_are_read_cell_by_cell(read: Read) -> None:
    cells = [(wrapped(f"TERM{n} " + PROSE[:90], 30), wrapped(f"MEANING{n} " + PROSE[95:185], 30)) for n in range(4)]

    def draw(document: Any) -> None:
        page = document.new_page()
        for n, (left, right) in enumerate(cells):
            page.insert_text((72, 100 + n * 90), left)
            page.insert_text((320, 100 + n * 90), right)

    text = read(draw)[0].markdown
    order = [text.index(f"{word}{n}") for n in range(4) for word in ("TERM", "MEANING")]
    assert order == sorted(order)


def test_a_page_of_nothing_but_running_lines_keeps_them(read: Read) -> None:
    def draw(document: Any) -> None:
        for number in range(6):
            page = document.new_page()
            page.insert_text((72, 40), "The Same Head", fontsize=9)
            if number != 3:
                page.insert_text((72, 300), f"Words of sheet {number}.")

    assert read(draw)[3].markdown == "The Same Head"


def test_figures_in_the_margin_are_no_page_numbers(read: Read) -> None:
    def draw(document: Any) -> None:
        for number in range(6):
            page = document.new_page()
            add_lines(page, 72, 300, wrapped(PROSE, 80))
            page.insert_text((72, 800), "Total assets")
            page.insert_text((400, 800), f"{number * 911 + 7001}")

    assert "7001" in read(draw)[0].markdown


def test_rotated_pages_read_as_displayed(read: Read) -> None:
    def draw(document: Any) -> None:
        page = document.new_page(width=600, height=800)
        page.set_rotation(90)
        for index, line in enumerate(wrapped(PROSE, 60)):
            page.insert_text(pymupdf.Point(100, 100 + index * 14) * page.derotation_matrix, line, rotate=90)

    page = read(draw)[0]
    assert page.markdown == PROSE.strip()
    box = page.blocks[0].box
    assert box[0] < 0.2 and box[1] < 0.25 and box[2] > 0.4  # wide, in the upper left


def test_empty_and_absurd_pages(read: Read) -> None:
    def draw(document: Any) -> None:
        document.new_page()
        document.new_page(width=14400, height=14400).insert_text((7000, 7000), "Somewhere", fontsize=200)
        document.new_page(width=3, height=3)

    pages = read(draw)
    assert [page.markdown for page in pages] == ["", "Somewhere", ""]
    assert all(0 <= value <= 1 for page in pages for block in page.blocks for value in block.box)


def test_nothing_is_lost_or_invented(tmp_path: Path) -> None:
    html = (
        "<h1>Rivers</h1><p>" + PROSE * 4 + "</p><ul><li>one &amp; two</li><li>three</li></ul>"
        "<table border='1'><tr><td>a</td><td>12</td></tr><tr><td>b</td><td>34</td></tr></table>"
        "<pre>x = 1\n    y = 2</pre><h2>Floods</h2><p>" + PROSE * 6 + "</p>"
    )
    document = pymupdf.open()
    document.new_page().insert_htmlbox((60, 60, 540, 780), html)
    document.save(tmp_path / "a.pdf")
    with PdfReader(tmp_path / "a.pdf") as reader:
        for page in reader.pages():
            plain = Counter(char for char in document[page.number - 1].get_text() if char.isalnum())
            written = Counter(char for char in page.markdown if char.isalnum())
            assert written == plain
            assert page.markdown == "\n\n".join(block.text for block in page.blocks if block.text)


def test_scattered_and_sideways_text_is_kept(read: Read) -> None:
    def draw(document: Any) -> None:
        page = document.new_page()
        add_lines(page, 72, 100, wrapped(PROSE * 2, 80))
        page.insert_text((40, 500), "Stamped along the margin", rotate=90)
        crowded = document.new_page()
        writer = pymupdf.TextWriter(crowded.rect)
        for index in range(2200):
            writer.append((20 + index % 40 * 14, 20 + index // 40 * 14), "x", fontsize=6)
        writer.write_text(crowded)

    first, second = read(draw)
    assert first.markdown.endswith("Stamped along the margin")
    assert second.markdown.count("x") == 2200


@pytest.mark.slow
def test_memory_does_not_grow_with_pages(tmp_path: Path) -> None:
    import tracemalloc

    document = pymupdf.open()
    for _ in range(200):
        add_lines(document.new_page(), 72, 90, wrapped(PROSE * 3, 80))
    document.save(tmp_path / "a.pdf")
    document.close()
    with PdfReader(tmp_path / "a.pdf") as reader:
        tracemalloc.start()
        count = sum(1 for _ in reader.pages())
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert count == 200
    assert peak < 9_000_000
