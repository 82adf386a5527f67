"""Headings, sections, lists, code, tables and pictures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pymupdf
from pdf_tools import PROSE, add_lines, wrapped

from research.records import Page

Read = Callable[..., list[Page]]


def chapter(document: Any, title: str, *sections: str) -> None:
    page = document.new_page()
    page.insert_text((72, 90), title, fontsize=22)
    y = add_lines(page, 72, 130, wrapped(PROSE * 2, 80))
    for section in sections:
        page.insert_text((72, y + 20), section, fontsize=15)
        y = add_lines(page, 72, y + 50, wrapped(PROSE * 2, 80))


def test_headings_by_size(read: Read) -> None:
    def draw(document: Any) -> None:
        chapter(document, "Rivers", "Springs")
        add_lines(document.new_page(), 72, 90, wrapped(PROSE * 4, 80))
        chapter(document, "Lakes", "Depth")

    first, second, third = read(draw)
    assert [(b.level, b.text) for b in first.blocks if b.kind == "heading"] == [(1, "# Rivers"), (2, "## Springs")]
    assert first.num_headings == 2
    assert (first.section_path, first.parent_heading) == ("Rivers", "Rivers")
    assert (second.section_path, second.parent_heading) == ("Rivers > Springs", "Springs")
    assert third.section_path == "Lakes"


def test_bold_and_numbered_headings_at_body_size(read: Read) -> None:
    def draw(document: Any) -> None:
        page = document.new_page()
        y = add_lines(page, 72, 90, wrapped(PROSE * 2, 80))
        page.insert_text((72, y + 14), "Legal Proceedings", fontsize=11, fontname="hebo")
        y = add_lines(page, 72, y + 40, wrapped(PROSE * 2, 80))
        page.insert_text((72, y + 14), "this bold line is only part of a sentence,", fontsize=11, fontname="hebo")

    headings = [block.text for block in read(draw)[0].blocks if block.kind == "heading"]
    assert len(headings) == 1 and headings[0].endswith(" Legal Proceedings")


def test_the_table_of_contents_names_sections(read: Read) -> None:
    def draw(document: Any) -> None:
        for title in ("1 Rivers", "1.1 Springs", "2 Lakes"):
            page = document.new_page()
            page.insert_text((72, 90), title, fontsize=11)  # the face says nothing
            add_lines(page, 72, 120, wrapped(PROSE * 3, 80))
        document.set_toc([[1, "Rivers", 1], [2, "Springs", 2], [1, "Lakes", 3], [1, "Nowhere", 3]])

    pages = read(draw)
    assert [page.section_path for page in pages][:2] == ["Rivers", "Rivers > Springs"]
    assert pages[2].section_path.startswith("Lakes")
    assert [page.blocks[0].text for page in pages] == ["# 1 Rivers", "## 1.1 Springs", "# 2 Lakes"]


def test_a_contents_entry_in_the_middle_starts_later(read: Read) -> None:
    def draw(document: Any) -> None:
        chapter(document, "Rivers")
        page = document.new_page()
        y = add_lines(page, 72, 90, wrapped(PROSE * 3, 80))
        page.insert_text((72, y + 20), "Lakes", fontsize=22)
        add_lines(page, 72, y + 50, wrapped(PROSE, 80))
        add_lines(document.new_page(), 72, 90, wrapped(PROSE, 80))
        document.set_toc([[1, "Rivers", 1], [1, "Lakes", 2]])

    assert [page.section_path for page in read(draw)] == ["Rivers", "Rivers", "Lakes"]


def test_section_paths_are_bounded(read: Read) -> None:
    def draw(document: Any) -> None:
        for _ in range(3):
            document.new_page().insert_text((72, 90), "Words.")
        document.set_toc([[n, f"{n} " + "long title " * 30, 1] for n in range(1, 7)] + [[1, "End", 3]])

    for page in read(draw):
        assert len(page.section_path) <= 400
        assert all(len(part) <= 120 for part in page.section_path.split(" > "))


def test_lists(read: Read) -> None:
    def draw(document: Any) -> None:
        page = document.new_page()
        y = add_lines(page, 72, 90, ["We found the following:"])
        y = add_lines(page, 90, y + 6, ["\u2022 water is wet and runs down", "\u2022 stone is hard"])
        add_lines(page, 90, y + 6, ["1. first do this", "2. then do that"])

    lists = [block.text for block in read(draw)[0].blocks if block.kind == "list"]
    assert "\n".join(lists).split("\n") == [
        "- water is wet and runs down",
        "- stone is hard",
        "1. first do this",
        "2. then do that",
    ]


def test_code_keeps_lines_and_indentation(read: Read) -> None:
    source = ["def flow(water):", "    if water:", "        return 1", "    return 0"]

    def draw(document: Any) -> None:
        page = document.new_page()
        y = add_lines(page, 72, 90, wrapped(PROSE * 2, 80))
        add_lines(page, 72, y + 20, source, size=10, font="cour")

    code = next(block for block in read(draw)[0].blocks if block.kind == "code")
    assert code.text == "```\n" + "\n".join(source) + "\n```"


def ruled_table(page: Any, rows: list[list[str]], *, width: float = 120, height: float = 24) -> None:
    for r, row in enumerate(rows):
        for c, cell in enumerate(row):
            box = pymupdf.Rect(72 + c * width, 200 + r * height, 72 + (c + 1) * width, 200 + (r + 1) * height)
            page.draw_rect(box, width=0.7)
            page.insert_text((box.x0 + 4, box.y0 + 16), cell, fontsize=10)


def test_a_ruled_table(read: Read) -> None:
    def draw(document: Any) -> None:
        page = document.new_page()
        add_lines(page, 72, 90, wrapped("Before. " + PROSE, 80))
        ruled_table(page, [["Year", "Rain | mm", "Snow"], ["2020", "812", "(3.5)"], ["2021", "790", ""]])
        add_lines(page, 72, 320, wrapped("After. " + PROSE, 80))

    page = read(draw)[0]
    before, table, after = page.blocks
    assert table.kind == "table" and page.num_tables == 1
    assert table.text.split("\n") == [
        "| Year | Rain \\| mm | Snow |",
        "| --- | --- | --- |",
        "| 2020 | 812 | (3.5) |",
        "| 2021 | 790 |  |",
    ]
    assert before.text.startswith("Before.") and after.text.startswith("After.")
    assert page.markdown.count("812") == 1


def test_rules_through_prose_are_no_table(read: Read) -> None:
    def draw(document: Any) -> None:
        page = document.new_page()
        add_lines(page, 72, 100, wrapped(PROSE * 6, 80))
        for x in (70, 200, 330, 520):
            page.draw_line((x, 80), (x, 400))
        for y in (80, 150, 250, 400):
            page.draw_line((70, y), (520, y))

    page = read(draw)[0]
    assert page.num_tables == 0
    assert " ".join(page.markdown.split()) == (PROSE * 6).strip()


def test_unruled_rows_stay_on_their_line(read: Read) -> None:
    rows = [
        ("Net sales", "$", "394,328", "$", "365,817"),
        ("Cost of sales", "", "(223,546)", "", "(212,981)"),
        ("Gross margin", "", "170,782", "", "152,836"),
        ("Margin in percent", "", "43.3", "", "41.8"),
    ]

    def draw(document: Any) -> None:
        page = document.new_page()
        y = add_lines(page, 72, 90, wrapped(PROSE, 80)) + 20
        for column, x in enumerate((72, 300, 312, 420, 432)):  # column by column, as some programs write
            for index, row in enumerate(rows):
                if row[column]:
                    page.insert_text((x, y + index * 15), row[column], fontsize=10)

    table = next(block for block in read(draw)[0].blocks if block.kind == "table")
    assert table.text.split("\n") == [
        "Net sales | $ 394,328 | $ 365,817",
        "Cost of sales | (223,546) | (212,981)",
        "Gross margin | 170,782 | 152,836",
        "Margin in percent | 43.3 | 41.8",
    ]


def test_pictures_are_counted_by_size(read: Read) -> None:
    pixels = pymupdf.Pixmap(pymupdf.csRGB, pymupdf.IRect(0, 0, 8, 8))
    pixels.clear_with(90)

    def draw(document: Any) -> None:
        page = document.new_page()
        page.insert_image((72, 72, 300, 300), pixmap=pixels)
        page.insert_image((400, 72, 410, 82), pixmap=pixels)  # an icon
        page.insert_text((72, 340), "Figure 1: grey.")

    page = read(draw)[0]
    assert page.num_pictures == 1
    assert [block.kind for block in page.blocks] == ["picture", "paragraph"]
    assert page.markdown == "Figure 1: grey."


def test_thousands_of_pictures_are_capped(read: Read) -> None:
    def draw(document: Any) -> None:
        page = document.new_page()
        page.insert_text((72, 72), "x")
        images = b"".join(
            b"q 90 0 0 90 %d %d cm BI /W 1 /H 1 /CS /G /BPC 8 ID x EI Q\n" % (n % 400, n // 4) for n in range(3000)
        )
        document.update_stream(page.get_contents()[0], images)

    assert read(draw)[0].num_pictures == 64


def test_a_table_whose_cells_stack_figures(read: Read) -> None:
    def draw(document: Any) -> None:
        page = document.new_page()
        for x in (70, 250, 350):
            page.draw_line((x, 200), (x, 290), width=0.7)
        for y in (200, 224, 290):
            page.draw_line((70, y), (350, y), width=0.7)
        add_lines(page, 76, 216, ["Item"])
        add_lines(page, 256, 216, ["2021"])
        add_lines(page, 76, 242, ["Rain", "Snow", "Hail"])
        add_lines(page, 256, 242, ["812", "(35)", "4"])

    table = next(block for block in read(draw)[0].blocks if block.kind == "table")
    assert table.text.split("\n")[2:] == ["| Rain | 812 |", "| Snow | (35) |", "| Hail | 4 |"]


def test_filled_forms_are_read(read: Read) -> None:
    def draw(document: Any) -> None:
        page = document.new_page()
        page.insert_text((72, 90), "Name:")
        widget = pymupdf.Widget()
        widget.field_type = pymupdf.PDF_WIDGET_TYPE_TEXT
        widget.field_name, widget.field_value = "name", "Ada Lovelace"
        widget.rect = pymupdf.Rect(120, 76, 300, 96)
        page.add_widget(widget)

    assert "Ada Lovelace" in read(draw)[0].markdown
