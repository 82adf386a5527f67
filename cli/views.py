"""Renderings of pages and scores that several commands share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from research.models import LegScore, Rewrite
from research.visible_text import one_line, phrase

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text


@dataclass(frozen=True, slots=True)
class Scored:
    """A numbered page and how each leg saw it."""

    number: int
    filename: str
    page: int
    page_label: str
    section: str
    score: float
    legs: Mapping[str, LegScore]


def page_name(page: int, label: str) -> str:
    """The physical page, and the printed one where it is another."""
    return f"{page} ({one_line(label)})" if label and label != str(page) else str(page)


def documents_note(count: int) -> str:
    """What a reader is told of an answer by documents."""
    return f"answered by {count} {'document' if count == 1 else 'documents'}, one page each"


def plain(text: str, style: str = "") -> Text:
    """Text as it is, styled as a whole."""
    from rich.text import Text

    return Text(text, style=style)


def explain_table(pages: Iterable[Scored]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="How the scores arose", title_justify="left")
    for name in ("#", "leg", "rank", "score", "parts"):
        table.add_column(name, justify="right" if name in {"#", "rank", "score"} else "left")
    for found in pages:
        for name, leg in found.legs.items():
            rank = "–" if leg.rank is None else str(leg.rank)
            table.add_row(str(found.number), name, rank, f"{leg.score:.3f}", plain(_parts(leg)))
    return table


def explain_lines(pages: Iterable[Scored]) -> Iterator[str]:
    """The same for stderr, a line a page and leg."""
    for found in pages:
        for name, leg in found.legs.items():
            rank = "-" if leg.rank is None else str(leg.rank)
            place = f"{one_line(found.filename)}:{found.page}" if found.page else one_line(found.filename)
            yield (
                f"[{found.number}] {place} score {found.score:.3f}"
                f" {name} rank {rank} score {leg.score:.3f} {_parts(leg)}".rstrip()
            )


def rewrite_lines(searched: str, rewrites: Iterable[Rewrite]) -> Iterator[str]:
    """What was searched, and what each rewriter did to the question."""
    yield f"searched: {phrase(searched)}"
    for rewrite in rewrites:
        yield f"rewritten by {rewrite.name}: {phrase(rewrite.why)}"
        if rewrite.documents:
            yield f"  ranked inside {len(rewrite.documents)} of the documents by: {phrase(rewrite.after)}"


def _parts(leg: LegScore) -> str:
    return "  ".join(f"{name} {value:.3f}" for name, value in leg.parts.items())
