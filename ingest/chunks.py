"""A page into passages that fit the encoder's window together with their context.

Breaks come at headings and blocks first, then lines or sentences, then words, then characters. Each block is counted
once and each sentence once where a block must be cut; counts are summed, since tokens never cross a blank.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from research.records import Block, Box, Chunk, Page, Region, union
from research.text import SENTENCE_BREAK, embedding_text

Count = Callable[[str], int]

SPECIAL_TOKENS = 2
MAX_CONTEXT = 48
MIN_WINDOW = 32  # below this a window holds nothing worth finding

LINES = re.compile(r"\n+")
CELLS = re.compile(r"(?<=\|)\s+")
WORDS = re.compile(r"\s+")
CUTS: dict[str, tuple[re.Pattern[str], ...]] = {
    "heading": (SENTENCE_BREAK, WORDS),
    "paragraph": (SENTENCE_BREAK, WORDS),
    "list": (LINES, SENTENCE_BREAK, WORDS),
    "picture": (LINES, SENTENCE_BREAK, WORDS),
    "code": (LINES, WORDS),
    "table": (LINES, CELLS, WORDS),
}


def chunk_page(
    page: Page,
    *,
    title: str,
    count: Count,
    window: int = 256,
) -> list[Chunk]:
    """Cut a page into passages in reading order; no non-blank character of a block is left out, none is empty.

    `count` gives a text's tokens without special ones.
    """
    if window < MIN_WINDOW:
        raise ValueError(f"a window of {window} tokens is too small; at least {MIN_WINDOW} are needed")
    chunker = _Chunker(page, title, count, window - SPECIAL_TOKENS)
    for number, block in enumerate(page.blocks):
        if block.text.strip():
            chunker.add_block(number, block)
    return chunker.finish()


def context_line(title: str, sections: list[str], count: Count, limit: int) -> str:
    """Join title and sections to one line of at most `limit` tokens; the innermost section and the title stay
    longest."""
    names = [" ".join(name.split()) for name in (title, *sections)]
    parts = [name for i, name in enumerate(names) if name and name not in names[:i]]
    room = limit
    kept: dict[int, str] = {}
    has_title = bool(parts) and parts[0] == names[0]
    outward = list(range(len(parts) - 1, int(has_title) - 1, -1))  # sections, innermost first
    order = [*outward[:1], *([0] if has_title else []), *outward[1:]]
    for rank, position in enumerate(order):
        # The first of several may not eat all the room; the outer sections come whole or not at all.
        share = (room // 2 if rank == 0 and len(order) > 1 else room) - 1
        part = _shorten(parts[position], count, share) if rank < 2 else parts[position]
        tokens = count(part)
        if part and tokens <= share:
            kept[position] = part
            room -= tokens + 1  # the separator's token
    return " > ".join(kept[position] for position in sorted(kept))


def _shorten(name: str, count: Count, limit: int) -> str:
    if limit <= 0:
        return ""
    if count(name) <= limit:
        return name
    kept, used = [], 0
    for word in name.split():
        used += count(word)
        if used > limit:
            break
        kept.append(word)
    if kept:
        return " ".join(kept)
    while name and count(name) > limit:  # one long word, or a script without blanks
        name = name[: len(name) // 2]
    return name


@dataclass(frozen=True, slots=True)
class _Part:
    """A block or a piece of one. `glue` stands before it when the piece before is of the same block."""

    block: int
    kind: str
    text: str
    tokens: int
    box: Box
    glue: str = ""
    depth: int = 0  # how many of its kind's cuts have been used on it
    header: str = ""  # a table's first row, to be repeated before a row that starts a chunk
    header_tokens: int = 0


@dataclass(slots=True)
class _Draft:
    """A chunk being filled. `room` is what its context leaves of the window for text."""

    context: str
    room: int
    parts: list[_Part] = field(default_factory=list)
    tokens: int = 0

    def add(self, part: _Part) -> None:
        self.parts.append(part)
        self.tokens += part.tokens

    @property
    def small(self) -> bool:
        return self.tokens < self.room // 4

    @property
    def only_headings(self) -> bool:
        return all(part.kind == "heading" for part in self.parts)


class _Chunker:
    def __init__(self, page: Page, title: str, count: Count, window: int) -> None:
        self._page = page.number
        self._title = title
        self._sections = [name.strip() for name in page.section_path.split(" > ") if name.strip()]
        self._count = count
        self._window = window
        self._heading = ""  # the latest heading above the current draft
        self._done: list[_Draft] = []
        self._draft = self._new_draft("")

    def add_block(self, number: int, block: Block) -> None:
        text = block.text.strip("\n")
        part = _Part(number, block.kind, text, self._count(text), block.box)
        draft = self._draft
        if block.kind == "heading" and draft.tokens >= draft.room // 2 and not draft.only_headings:
            self._close()
        self._place(part)

    def finish(self) -> list[Chunk]:
        self._close(carry=False)
        self._settle_last()
        chunks: list[Chunk] = []
        for draft in self._done:
            chunks += self._chunks(draft.context, draft.parts, len(chunks))
        return chunks

    def _place(self, part: _Part) -> None:
        if not self._draft.parts:
            # A heading opens a section of its own; anything else stands under the heading before it.
            self._draft = self._new_draft("" if part.kind == "heading" else self._heading)
        draft = self._draft
        if draft.tokens + part.tokens + self._lead_tokens(part) <= draft.room:
            self._append(part)
        elif not draft.small and not draft.only_headings:
            self._close()
            self._place(part)
        elif draft.parts and part.kind == "heading":
            self._close(carry=False)
            self._place(part)
        else:
            # A line or two, or only headings, take the beginning of what follows instead of standing alone.
            pieces = list(self._pieces(part))
            if len(pieces) == 1:
                self._append(pieces[0])  # a single character; nothing smaller exists
            else:
                for piece in pieces:
                    self._place(piece)

    def _append(self, part: _Part) -> None:
        if lead := self._lead_tokens(part):
            self._draft.add(replace(part, text=part.header, tokens=lead, header="", header_tokens=0))
            part = replace(part, glue="\n")
        self._draft.add(part)

    def _lead_tokens(self, part: _Part) -> int:
        """Tokens of the table header that has to be repeated before this part, 0 if none."""
        if not part.header or part.header_tokens + part.tokens > self._draft.room:
            return 0
        return 0 if any(other.block == part.block for other in self._draft.parts) else part.header_tokens

    def _pieces(self, part: _Part) -> Iterator[_Part]:
        cuts = CUTS[part.kind]
        for depth in range(part.depth, len(cuts)):
            pieces = list(_cut(part.text, cuts[depth]))
            if len(pieces) < 2:
                continue
            header, header_tokens = part.header, part.header_tokens
            for position, (glue, text) in enumerate(pieces):
                tokens = self._count(text)
                yield replace(
                    part,
                    text=text,
                    tokens=tokens,
                    glue=part.glue if position == 0 else glue,
                    depth=depth + 1,
                    header=header,
                    header_tokens=header_tokens,
                )
                if part.kind == "table" and cuts[depth] is LINES and position == 0:
                    header, header_tokens = text, tokens
            return
        middle = len(part.text) // 2
        for glue, text in ((part.glue, part.text[:middle]), ("", part.text[middle:])):
            if text:
                yield replace(part, text=text, tokens=self._count(text), glue=glue, depth=len(cuts))

    def _new_draft(self, heading: str) -> _Draft:
        sections = [*self._sections, *([heading] if heading else [])]
        context = context_line(self._title, sections, self._count, min(MAX_CONTEXT, self._window // 4))
        return _Draft(context, self._window - self._count(context))

    def _close(self, *, carry: bool = True) -> None:
        """Ends the draft. Headings at its end go on to the next one: they belong to what follows."""
        draft, carried = self._draft, list[_Part]()
        if not draft.parts:
            return
        if carry and not draft.only_headings:
            first = len(draft.parts)
            while draft.parts[first - 1].kind == "heading":
                first -= 1
            if sum(part.tokens for part in draft.parts[first:]) <= draft.room // 4:
                carried = draft.parts[first:]
                del draft.parts[first:]
                draft.tokens -= sum(part.tokens for part in carried)
        self._done.append(draft)
        for part in draft.parts:
            if part.kind == "heading":
                self._heading = part.text.lstrip("# ").strip()
        self._draft = self._new_draft("")
        for part in carried:
            self._draft.add(part)

    def _settle_last(self) -> None:
        """A few words left over at the end of a page join the chunk before, or take some of its text."""
        if len(self._done) < 2 or not self._done[-1].small:
            return
        giver, last = self._done[-2:]
        if giver.tokens + last.tokens <= giver.room:
            giver.parts += last.parts
            giver.tokens += last.tokens
            self._done.pop()
            return
        if last.parts[0].kind in ("heading", "table"):
            return  # a section of its own; or rows under a repeated header, which text must not come between
        if len(giver.parts) == 1:
            giver.parts = list(self._pieces(giver.parts[0]))
        while len(giver.parts) > 1 and (last.small or giver.parts[-1].kind == "heading"):
            part = giver.parts[-1]
            if part.kind == "table" or last.tokens + part.tokens > last.room:
                return
            giver.parts.pop()
            giver.tokens -= part.tokens
            last.parts.insert(0, part)
            last.tokens += part.tokens

    def _chunks(self, context: str, parts: list[_Part], ordinal: int) -> list[Chunk]:
        text, regions = _join(parts)
        chunk = Chunk(self._page, ordinal, text, context, 0, union(part.box for part in parts), regions)
        tokens = self._count(embedding_text(chunk.context, chunk.text))
        if tokens <= self._window:
            return [replace(chunk, tokens=tokens)]
        # Only where an encoder's counts do not add up (its tokens reach across blanks): cut until each half fits.
        if len(parts) == 1:
            parts = list(self._pieces(parts[0]))
        if len(parts) == 1:
            raise ValueError("one character exceeds the encoder's window")
        first = self._chunks(context, parts[: len(parts) // 2], ordinal)
        return first + self._chunks(context, parts[len(parts) // 2 :], ordinal + len(first))


def _cut(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """The pieces between the pattern's matches, each with the blanks before it; blank pieces are skipped."""
    glue, start = "", 0
    for match in pattern.finditer(text):
        piece = text[start : match.start()]
        if piece.strip():
            yield glue, piece
            glue = match.group()
        else:
            glue += piece + match.group()
        start = match.end()
    if text[start:].strip():
        yield glue, text[start:]


def _join(parts: list[_Part]) -> tuple[str, tuple[Region, ...]]:
    """The parts as one text, and where each block begins in it."""
    text, last = "", -1
    regions: list[Region] = []
    for part in parts:
        text += part.glue if part.block == last else "\n\n" if text else ""
        if part.block != last:
            regions.append(Region(len(text), part.box))
        text += part.text
        last = part.block
    lead = len(text) - len(text.lstrip("\n"))
    return text.strip("\n"), tuple(Region(max(0, region.start - lead), region.box) for region in regions)
