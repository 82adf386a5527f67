"""What is quoted of a part of a document: its first sentences; the words of the question stand elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from research.context.sections import section_path
from research.models import Item, Passage
from research.store.fulltext.analyzer import normalize

_MOST = 3  # passages
_LONGEST = 400  # characters of one; as many as a quote has
_SENTENCE = 4  # words; what has fewer is a running header or a caption
_NEXT = 0.05  # what a passage scores less than the one before it
_LATER = 0.3  # and on a later page
_NUMBER = 14  # characters that a heading's line may have beside it
_GOES_ON = {"risks", "letter", "outline"}  # over headings of its own
_NAMES = {"risks": "section on risks", "letter": "letter or statement to its readers"}


def opened(item: Item) -> Item:
    """The item, if it was found for a part of its document, with the beginning of that as its passages."""
    if item.part is None:
        return item
    begins = item.part.heading or item.part.name == "beginning"
    outline = item.part.name == "outline"
    headings = [unit.start for unit in item.units if outline and unit.kind == "heading"]  # each stands before its text
    section = str(item.metadata.get("section_path") or "")
    passages = [
        Passage(
            item.text[(start := max((each for each in headings if each < begin), default=begin)) : end],
            1.0 - _NEXT * rank - (0.0 if begins else _LATER),
            start=start,
            end=end,
            section_path=section_path(item.text, item.units, start, section),
        )
        for rank, (begin, end) in enumerate(islice(_windows(item), 1 if outline else _MOST))
    ]
    return replace(item, passages=tuple(passages)) if passages else item


def _windows(item: Item) -> Iterator[tuple[int, int]]:
    """Sentences of the part that follow each other; no heading parts them, and few parts go on behind the next one."""
    assert item.part is not None
    top, window = _place_of(item.part.heading, item.text), (0, 0)
    for unit in item.units:
        start = max(unit.start, top)
        full = window[1] > 0 and (unit.kind == "heading" or unit.end - window[0] > _LONGEST)
        if unit.end > top and full:
            yield window
            if unit.kind == "heading" and item.part.name not in _GOES_ON:
                return
            window = (0, 0)
        words = item.text[start : unit.end].split()
        said = len(words) >= _SENTENCE or (words[-1:] and words[-1][-1] in ".!?。")
        if unit.end > top and said and unit.kind not in ("heading", "row", "code"):
            window = (window[0] if window[1] else start, unit.end)
    if window[1]:
        yield window


def _place_of(heading: str, text: str) -> int:
    """Where the text under a heading begins; a line that runs on from its heading is part of it."""
    best, found, place = len(text), 0, 0
    for line in text.splitlines(keepends=True) if heading else ():
        said = normalize(line).strip("#*_ \n")
        alone = heading in said and len(said) <= len(heading) + _NUMBER
        if (alone or said.startswith(heading)) and len(said) < best:
            best, found = len(said), place + len(line) * alone
        place += len(line)
    return found


def part_note(items: Sequence[Item]) -> str:
    """What part of its document an answer is, in plain words; empty, if it is none."""
    part = items[0].part if items else None
    if part is None:
        return ""
    found = [item for item in items if item.part is not None and item.part.name == part.name]
    files = list(dict.fromkeys(str(item.metadata["filename"]) for item in found))
    pages = [item.ref.part for item in found if item.metadata["filename"] == files[0]]
    run = [int(page) - at for at, page in enumerate(pages)]
    where = f"page{'s' if len(pages) > 1 else ''} {', '.join(pages)}"
    if len(pages) > 1 and len(set(run)) == 1:
        where = f"pages {pages[0]}-{pages[-1]}"
    if len(files) > 1:
        where = ", ".join(files)
    if part.name in ("outline", "beginning"):
        begins = "it begins so" if part.name == "beginning" else "its sections begin so"
        return f"No summary of its own was found in the document; {begins} ({where})."
    return f"From {'each' if len(files) > 1 else 'the'} document's own {_NAMES.get(part.name, part.name)} ({where})."
