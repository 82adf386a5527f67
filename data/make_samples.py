"""Build the sample PDFs from data/source: `python data/make_samples.py [folder]`.

The same PyMuPDF version writes the same bytes each time, so a rebuild shows in git only when a text changed.
"""

from __future__ import annotations

import io
import random
import re
import sys
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import md5
from pathlib import Path
from string import Template

import pymupdf

HERE = Path(__file__).resolve().parent
SOURCE = HERE / "source"

A4 = pymupdf.paper_rect("a4")
A5 = pymupdf.paper_rect("a5")
JOURNAL = pymupdf.Rect(0, 0, 482, 680)

HEADING = re.compile(r"<h([1-3])[^>]*>(.*?)</h\1>", re.DOTALL)
# A break between two consonants that stand between vowels is right often enough for a sample; pairs that
# sound as one, or open a syllable together, stay together.
SYLLABLE = re.compile(
    r"(?<=[a-z][aeiouy][bcdfghjklmnprstvwxz])"
    r"(?<!s(?=[ch]))(?<![cptgw](?=h))(?<!c(?=k))(?<!t(?=w))(?<![tdbgpfc](?=r))(?<![bcfgp](?=l))(?<!l(?=d))"
    r"(?=[bcdfghjklmnprstvwxz][aeiouy][a-z])(?![a-z](?:ed|ings?)\b)"
)

Frames = Callable[[int], Sequence[pymupdf.Rect]]


@dataclass(frozen=True)
class Mark:
    """A heading (level 1 to 3) or an element with an id (level 0), and where it came to stand."""

    level: int
    ident: str
    page: int
    box: pymupdf.Rect


@dataclass(frozen=True)
class Card:
    """What the PDF says about itself."""

    title: str
    author: str
    date: str


def source(name: str) -> str:
    return (SOURCE / name).read_text(encoding="utf-8")


def flow(
    parts: Sequence[str],
    css: str,
    paper: pymupdf.Rect,
    frames: Frames,
    archive: pymupdf.Archive | None = None,
) -> tuple[pymupdf.Document, list[Mark]]:
    """Pour each part, from a new page on, into the frames of as many pages as it needs."""
    buffer = io.BytesIO()
    writer = pymupdf.DocumentWriter(buffer)
    marks: list[Mark] = []
    number = 0

    def note(spot: pymupdf.story.Position) -> None:
        if spot.open_close & 1 and (spot.heading or spot.id):
            marks.append(Mark(spot.heading, spot.id or "", number, pymupdf.Rect(spot.rect)))

    for part in parts:
        story, more = pymupdf.Story(part, user_css=source(css), archive=archive), 1
        while more:
            device = writer.begin_page(paper)
            for frame in frames(number):
                more, _ = story.place(frame)
                story.element_positions(note)
                story.draw(device)
                if not more:
                    break
            writer.end_page()
            number += 1
    writer.close()
    return pymupdf.open("pdf", buffer.getvalue()), marks


def chapters(html: str) -> list[str]:
    # One story a chapter: within a story MuPDF paints a box's background again at the top of later pages.
    return [part for part in re.split(r"(?=<h1>)", html) if part.strip()]


def single(frame: pymupdf.Rect) -> Frames:
    return lambda number: [frame]


def outline(html: str, marks: Sequence[Mark], offset: int = 0) -> list[tuple[int, str, int]]:
    # The words come from the source: Story loses the space where a heading wraps.
    words = [" ".join(re.sub(r"<[^>]+>", "", text).split()) for _, text in HEADING.findall(html)]
    headings = [mark for mark in marks if mark.level]
    return [(mark.level, text, mark.page + 1 + offset) for mark, text in zip(headings, words, strict=True)]


def write_line(page: pymupdf.Page, y: float, text: str, margin: float, side: str = "left") -> None:
    size, font = 8, "helv"
    width = pymupdf.get_text_length(text, fontname=font, fontsize=size)
    free = page.rect.width - 2 * margin - width
    x = margin + {"left": 0.0, "centre": free / 2, "right": free}[side]
    page.insert_text((x, y), text, fontname=font, fontsize=size, color=(0.35, 0.35, 0.35))


def rule(page: pymupdf.Page, y: float, margin: float) -> None:
    page.draw_line((margin, y), (page.rect.width - margin, y), color=(0.6, 0.6, 0.6), width=0.5)


def save(doc: pymupdf.Document, path: Path, card: Card) -> None:
    doc.subset_fonts()
    stamp = f"D:{card.date}090000Z"
    doc.set_metadata(
        {
            "title": card.title,
            "author": card.author,
            "producer": f"ctx samples, PyMuPDF {pymupdf.VersionBind}",
            "creationDate": stamp,
            "modDate": stamp,
        }
    )
    # A fresh /ID is random; one made from the name keeps the bytes the same.
    ident = md5(path.name.encode(), usedforsecurity=False).hexdigest()
    doc.xref_set_key(-1, "ID", f"[<{ident}><{ident}>]")
    path.write_bytes(doc.tobytes(garbage=4, deflate=True, use_objstms=1, no_new_id=True))


def contents_page(entries: Sequence[tuple[int, str, int]]) -> str:
    kinds = {1: "chapter", 2: "section"}
    rows = (
        f'<tr class="{kinds[level]}"><td>{text}</td><td class="leaf">{page}</td></tr>'
        for level, text, page in entries
        if level in kinds
    )
    return f'<p class="contents">Contents</p><table>{"".join(rows)}</table>'


def handbook(folder: Path, year: str) -> None:
    """A booklet whose printed numbers start after the front matter: label and physical page differ."""
    words = tomllib.loads(source("handbook-editions.toml"))[year]
    html = Template(source("handbook.html")).substitute(words)
    margin = 44
    frame = pymupdf.Rect(margin, 58, A5.width - margin, A5.height - 48)
    body, marks = flow(chapters(html), "handbook.css", A5, single(frame))
    cover = Template(source("handbook-cover.html")).substitute(words)
    opening = [cover, contents_page(outline(html, marks))]
    taller = pymupdf.Rect(frame.x0, frame.y0 - 16, frame.x1, frame.y1 + 10)
    doc, _ = flow(opening, "front.css", A5, single(taller))
    front = len(doc)
    doc.insert_pdf(body)
    doc.set_toc([[1, "Contents", front], *map(list, outline(html, marks, front))])
    doc.set_page_labels(
        [
            {"startpage": 0, "prefix": "", "style": "r", "firstpagenum": 1},
            {"startpage": front, "prefix": "", "style": "D", "firstpagenum": 1},
        ]
    )
    for page in doc.pages(1):
        write_line(page, A5.height - 26, page.get_label(), margin, "centre")
        if page.number >= front:
            write_line(page, 36, "Saltmarsh Harbour Cooperative", margin)
            write_line(page, 36, f"Staff Handbook {year}", margin, "right")
            rule(page, 42, margin)
    card = Card(f"Staff Handbook {year}", "Saltmarsh Harbour Cooperative", f"{int(year) - 1}1215")
    save(doc, folder / f"saltmarsh-handbook-{year}.pdf", card)


def hyphenate(html: str) -> str:
    """Soft hyphens in long lower-case words, so that narrow columns break them as printed papers do."""

    def soften(match: re.Match[str]) -> str:
        return SYLLABLE.sub("\u00ad", match[0])

    # Words only, never the inside of a tag or an entity.
    return re.sub(r"(?<![<&/\w=\"-])[a-z]{7,}(?![\w=;])(?![^<]*>)", soften, html)


def article(folder: Path) -> None:
    """Two columns, ligatures, broken words, a drawn figure and a ruled table; no outline."""
    margin, gutter, top, bottom = 42, 16, 56, JOURNAL.height - 46
    width = (JOURNAL.width - 2 * margin - gutter) / 2
    right = JOURNAL.width - margin
    whole = pymupdf.Rect(margin, top, right, bottom)
    head, head_marks = flow([source("article-head.html")], "article.css", JOURNAL, single(whole))
    below_head = head_marks[-1].box.y1 + 8

    def columns(number: int) -> list[pymupdf.Rect]:
        y = below_head if number == 0 else top
        return [pymupdf.Rect(x, y, x + width, bottom) for x in (margin, right - width)]

    doc, marks = flow([hyphenate(source("article.html"))], "article.css", JOURNAL, columns)
    doc[0].show_pdf_page(JOURNAL, head, 0, overlay=False)
    figure = next(mark for mark in marks if mark.ident == "figure-1")
    chart = pymupdf.open("pdf", pymupdf.open(SOURCE / "cooling-effect.svg").convert_to_pdf())
    space = pymupdf.Rect(figure.box.x0, figure.box.y0 - 130, figure.box.x1, figure.box.y0 - 4)
    doc[figure.page].show_pdf_page(space, chart, 0)
    for page in doc:
        write_line(page, 34, "Stellenfjord Papers on Building Climate, vol. 12 (2024)", margin)
        write_line(page, 34, str(118 + page.number), margin, "right")
        rule(page, 40, margin)
    card = Card("Night flushing or ceiling fans?", "O. Brask, F. Adeyinka-Lund, C. Whitlock", "20240312")
    save(doc, folder / "night-cooling-school-libraries.pdf", card)


def annual_report(folder: Path) -> None:
    """Unruled tables of two years, two segments alike to the line, and a chart that is only a picture."""
    archive = pymupdf.Archive()
    chart = pymupdf.open(SOURCE / "order-intake.svg")[0].get_pixmap(dpi=160)
    archive.add(chart.tobytes("png"), "order-intake.png")
    margin = 68
    frame = pymupdf.Rect(margin, 70, A4.width - margin, A4.height - 70)
    doc, _ = flow(chapters(source("annual-report.html")), "report.css", A4, single(frame), archive)
    for page in doc.pages(1):
        write_line(page, A4.height - 40, "Tessel & Rowe Instruments plc    Annual Report 2024", margin)
        write_line(page, A4.height - 40, str(page.number + 1), margin, "right")
    card = Card("Annual Report 2024", "Tessel & Rowe Instruments plc", "20241204")
    save(doc, folder / "tessel-rowe-annual-report-2024.pdf", card)


def manual(folder: Path) -> None:
    """Listings, warnings, steps, a troubleshooting table, and an outline."""
    html = source("manual.html")
    margin = 40
    frame = pymupdf.Rect(margin, 62, A5.width - margin, A5.height - 56)
    doc, marks = flow(chapters(html), "manual.css", A5, single(frame))
    doc.set_toc([list(entry) for entry in outline(html, marks)])
    for page in doc.pages(1):
        write_line(page, 38, "Brindle G4 user manual", margin)
        write_line(page, 38, f"Page {page.number + 1} of {len(doc)}", margin, "right")
        rule(page, 44, margin)
    card = Card("G4 Greenhouse Controller: user manual", "Brindle Horticultural Controls", "20240605")
    save(doc, folder / "brindle-g4-controller-manual.pdf", card)


def scan(page: pymupdf.Page, noise: random.Random, tilt: float) -> bytes:
    """The page as a flatbed scanner would see it: grey, grainy and not quite straight."""
    zoom = pymupdf.Matrix(150 / 72, 150 / 72).prerotate(tilt)
    clean = page.get_pixmap(matrix=zoom, colorspace=pymupdf.csGRAY)
    # White paper becomes 238 to 245 and black ink 34 to 41: a band of values small enough for JPEG.
    shades = [34 + value * 204 // 255 for value in range(256)]
    grain = noise.randbytes(len(clean.samples))
    grey = bytes([shades[value] + (dot & 7) for value, dot in zip(clean.samples, grain, strict=True)])
    return pymupdf.Pixmap(pymupdf.csGRAY, clean.width, clean.height, grey, 0).tobytes("jpeg", jpg_quality=50)


def scanned_letter(folder: Path) -> None:
    """Pictures of two pages, with no text layer at all."""
    frame = pymupdf.Rect(78, 72, A4.width - 78, A4.height - 72)
    typed, _ = flow([source("footbridge-letter.html")], "letter.css", A4, single(frame))
    noise = random.Random(17)
    doc = pymupdf.open()
    for page, tilt in zip(typed, (0.4, -0.3), strict=True):
        sheet = doc.new_page(width=A4.width, height=A4.height)
        sheet.insert_image(sheet.rect, stream=scan(page, noise, tilt), keep_proportion=False)
    save(doc, folder / "footbridge-inspection-letter-scan.pdf", Card("Scan 0017", "", "20231109"))


def build(folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    handbook(folder, "2024")
    handbook(folder, "2025")
    article(folder)
    annual_report(folder)
    manual(folder)
    scanned_letter(folder)
    return sorted(folder.glob("*.pdf"))


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "samples"
    for path in build(folder):
        with pymupdf.open(path) as doc:
            sys.stdout.write(f"{path.name}: {len(doc)} pages, {path.stat().st_size // 1024} KiB\n")


if __name__ == "__main__":
    main()
