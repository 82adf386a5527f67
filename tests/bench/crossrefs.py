"""A set of ours on cross references (data/crossrefs.toml): documents of eight fields with pages that say "as Table 5
shows", while the table's page shares few words with the question. Made when it is needed; gold is the page referred to.

Of every topic there is a page that tells of it and refers, two more that tell of it and do not, and the one with the
figures, far behind. Two of the fields were written after the weights were chosen, and asked once.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymupdf

from research.evaluation import Question

SOURCE = Path(__file__).parents[2] / "data" / "crossrefs.toml"
WIDTH, HEIGHT, MARGIN = 420, 595, 50


@dataclass(frozen=True, slots=True)
class Topic:
    question: str
    told: str  # the page that refers; {page} is where the target stands
    beside: tuple[str, str]  # pages that tell of the same
    target: str  # headings begin with "# "
    next: bool = False  # the target follows at once


@dataclass(frozen=True, slots=True)
class Field:
    name: str
    title: str
    topics: tuple[Topic, ...]
    held_apart: bool


def fields() -> list[Field]:
    read = tomllib.loads(SOURCE.read_text("utf-8"))
    return [
        Field(name, given["title"], tuple(_topic(topic) for topic in given["topics"]), given["held_apart"])
        for name, given in read.items()
    ]


def _topic(given: dict[str, Any]) -> Topic:
    first, second = given["beside"]
    return Topic(given["question"], given["told"], (first, second), given["target"], given.get("next", False))


def make(folder: Path) -> dict[str, list[Question]]:
    """The documents, into a folder; the questions of each with their gold page."""
    folder.mkdir(parents=True, exist_ok=True)
    return {field.name: list(_make_field(field, folder)) for field in fields()}


def _make_field(field: Field, folder: Path) -> Iterator[Question]:
    told, behind = [f"# {field.title}\nFirst edition."], []
    for topic in field.topics:
        told += [topic.told, *([topic.target] if topic.next else []), *topic.beside]
        behind += [] if topic.next else [topic.target]
    pages = [*told, *behind]
    where = {topic.target: pages.index(topic.target) + 1 for topic in field.topics}
    for topic in field.topics:
        at = pages.index(topic.told)
        pages[at] = topic.told.format(page=where[topic.target])
    document = pymupdf.open()
    for text in pages:
        _write(document, text)
    document.set_metadata({"title": field.title})
    document.save(folder / f"{field.name}.pdf")
    document.close()
    for number, topic in enumerate(field.topics):
        gold = ((f"{field.name}.pdf", where[topic.target]),)
        yield Question(f"{field.name}-{number}", topic.question, gold)


def _write(document: pymupdf.Document, text: str) -> None:
    page = document.new_page(width=WIDTH, height=HEIGHT)
    y = 60.0
    for paragraph in text.splitlines():
        heading = paragraph.startswith("# ")
        size = 15.0 if heading else 10.0
        line = ""
        for word in [*paragraph.removeprefix("# ").split(), ""]:
            longer = f"{line} {word}".strip()
            if not word or pymupdf.get_text_length(longer, "helv", size) > WIDTH - 2 * MARGIN:
                page.insert_text((MARGIN, y), line, fontname="hebo" if heading else "helv", fontsize=size)
                y, line = y + 1.3 * size, word
            else:
                line = longer
        y += 6


if __name__ == "__main__":
    make(Path(sys.argv[1]))
