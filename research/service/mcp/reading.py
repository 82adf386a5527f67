"""get_page and page_image: a page as it is stored, with its neighbours, or as it looks."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from research.errors import NothingFoundError
from research.service.mcp.budget import Budget, Picture, Reply, TextIn, escaped_counter, filled
from research.service.mcp.tools import in_line, short_name, suspicion_notes

if TYPE_CHECKING:
    from research.index import Index
    from research.models import Item, PageView

_JPEG, _JPEG_BEGINS, _JPEG_QUALITY = "image/jpeg", b"\xff\xd8\xff", 80
_MOST_SIDE = 1280  # pixels
_MOST_IMAGE = 64 * 1024 * 1024
NO_TEXT = "(no text on this page; page_image shows it)"


def get_page(
    index: Index,
    document: str,
    *,
    page: int | None = None,
    around: int = 0,
    start: int = 0,
    max_tokens: int = 4000,
    text_in: TextIn = "content",
) -> Reply:
    """A page's text, and the pages around it as far as the budget goes: the nearest first."""
    asked = index.documents.page(document, page)
    number = int(asked.item.ref.part)
    first, last = max(1, number - around), min(asked.num_pages, number + around)
    views = index.documents.pages(asked.item.ref.key, [(first, last)]) if around else [asked]
    views.sort(key=lambda view: abs(int(view.item.ref.part) - number))
    reading = _Reading(asked, views, start)
    budget = Budget(max_tokens, text_in)
    reply = filled(reading.reply, lambda reply: reply, budget.room(reading.reply(0)), budget)
    if not (reply.fields or {})["pages"]:
        raise budget.too_small(reply)
    return reply


def page_image(index: Index, document: str, *, page: int | None = None, question: str | None = None) -> Reply:
    """A page's picture, with the places framed that fit a question."""
    view = index.documents.page(document, page, question=question)
    item = view.item
    name = short_name(str(item.metadata["filename"]))
    words = f"{name}, page {item.ref.part} of {view.num_pages} | {item.ref}"
    try:
        picture = _picture(str(item.metadata["image_path"]), item if question is not None else None)
    except OSError:
        raise NothingFoundError(
            f"page {item.ref.part} of {name} has no picture in the index", hint="read its text with get_page"
        ) from None
    if question is not None:
        count = len(item.regions)
        words += f"\n{count} {'place is' if count == 1 else 'places are'} framed in red; the thickest frame fits best."
        if not count:
            words = f"{words.partition(chr(10))[0]}\nNothing on this page fits the question, so nothing is framed."
    notes = suspicion_notes([("This page", item.signals)])
    return Reply("\n".join([words, *notes]), None, picture)


def _picture(path: str, item: Item | None) -> Picture:
    """As it is stored, unless something is drawn on it or it is too large. Raises OSError if there is none."""
    from PIL import Image

    from research.boxes import framed

    data = _stored(path)
    with Image.open(io.BytesIO(data)) as stored:
        small_enough = max(stored.size) <= _MOST_SIDE
    if small_enough and not (item and item.regions):
        return Picture(data, _JPEG)
    drawn = framed(io.BytesIO(data), item.regions if item else ())
    drawn.thumbnail((_MOST_SIDE, _MOST_SIDE))
    made = io.BytesIO()
    drawn.save(made, "JPEG", quality=_JPEG_QUALITY)
    return Picture(made.getvalue(), _JPEG)


def _stored(path: str) -> bytes:
    """A file of the index. Not through a link, which may have come with it, and nothing but a JPEG."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size > _MOST_IMAGE:
            raise OSError("no picture")
        data = file.read()
    if not data.startswith(_JPEG_BEGINS):
        raise OSError("no JPEG")
    return data


class _Reading:
    """Pages on their way to an agent: the one that was asked for, and those around it by their distance."""

    def __init__(self, asked: PageView, views: Sequence[PageView], start: int) -> None:
        from research.context import page_text

        self._asked = asked
        self._number = int(asked.item.ref.part)
        self._start = start
        self._views = {int(view.item.ref.part): view for view in views}
        self._items: list[Item] = []
        for view in views:
            text = page_text(view.item.text)
            if int(view.item.ref.part) == self._number:
                self._length = len(text)
                text = text[start:]
            self._items.append(replace(view.item, text=text if text.strip() else NO_TEXT))
        if start and start >= self._length:
            raise NothingFoundError(
                f"page {self._number} has {self._length} characters, none from start={start} on",
                hint="leave start out, or read the next page",
            )

    def reply(self, tokens: int) -> Reply:
        """With so many tokens of text."""
        from research.context import CitedPages, fit_items

        renderer = CitedPages()
        fitted = fit_items(self._items, tokens, renderer, escaped_counter(), extent="pages")
        kept = sorted(fitted.items, key=lambda item: int(item.ref.part))
        parts = [renderer.entry(item, number) for number, item in enumerate(kept, start=1)]
        next_start = self._next_start(kept)
        text = "\n".join(self._notes(kept, next_start)) + "\n\n" + "\n\n".join(parts)
        return Reply(text, self._fields(kept, next_start))

    def _next_start(self, kept: Sequence[Item]) -> int | None:
        """Where the page that was asked for goes on, if it was cut."""
        from research.context import CUT_MARK

        for item in kept:
            if int(item.ref.part) == self._number and item.cut:
                whole = next(each.text for each in self._items if each.ref == item.ref)
                lead = len(whole) - len(whole.lstrip())
                return self._start + lead + len(item.text.removesuffix(CUT_MARK).rstrip())
        return None

    def _notes(self, kept: Sequence[Item], next_start: int | None) -> list[str]:
        facts = self._asked.item.metadata
        name = short_name(str(facts["filename"]))
        notes = [f"{name}, {self._asked.num_pages} pages. Cite as [n]: " + " ".join(_places(kept))]
        label, section = str(facts["page_label"]), in_line(str(facts["section_path"]))
        if label and label != str(self._number):
            notes.append(f"Printed on page {self._number}: {in_line(label, 20)}.")
        if section:
            notes.append(f"Section of page {self._number}: {section}")
        if next_start is not None:
            notes.append(f"Truncated: page {self._number} goes on with start={next_start}, or raise max_tokens.")
        missing = sorted(set(self._views) - {int(item.ref.part) for item in kept})
        if missing:
            notes.append(f"Left out for want of room: page {', '.join(map(str, missing))}. Raise max_tokens.")
        if self._asked.error:
            notes.append(f"Page {self._number} could not be read wholly.")
        read = [item.ref.part for item in kept if item.metadata["ocr"]]
        if read:
            notes.append(f"Read by OCR, so trust letters and digits less: page {', '.join(read)}.")
        return notes + suspicion_notes((f"page {item.ref.part}", item.signals) for item in kept)

    def _fields(self, kept: Sequence[Item], next_start: int | None) -> dict[str, Any]:
        fields: dict[str, Any] = {
            "doc_id": self._asked.item.ref.key,
            "filename": str(self._asked.item.metadata["filename"]),
            "num_pages": self._asked.num_pages,
            "pages": [
                {"citation": number, "ref": str(item.ref), "page": int(item.ref.part)}
                for number, item in enumerate(kept, start=1)
            ],
            "truncated": len(kept) < len(self._views) or any(item.cut for item in kept),
        }
        return fields if next_start is None else {**fields, "next_start": next_start}


def _places(kept: Sequence[Item]) -> list[str]:
    return [f"[{number}] {item.ref}" for number, item in enumerate(kept, start=1)]
