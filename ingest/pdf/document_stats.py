"""What must be known of the whole document before any page can be written: font sizes, words, headers and footers.

Everything here is bounded: a document of thousands of pages costs no more than one of fifty.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ingest.pdf.headers_footers import HeadersFooters
from ingest.pdf.hyphens import Vocabulary
from ingest.pdf.lines import RawPage

_MAX_SIZES = 2_000


def half_points(size: float) -> float:
    """Sizes to the nearest half point: scaled pages give the same font slightly different sizes."""
    return round(size * 2) / 2


@dataclass(slots=True)
class DocumentStats:
    """Gathers during the first pass, answers during the second."""

    characters: Counter[float] = field(default_factory=Counter)
    mono_characters: int = 0
    vocabulary: Vocabulary = field(default_factory=Vocabulary)
    headers_footers: HeadersFooters = field(default_factory=HeadersFooters)

    def add(self, page: RawPage) -> None:
        top, bottom = 0.08 * page.height, 0.92 * page.height
        for line in page.lines:
            if not line.upright:
                continue  # stamps along the margin
            size = half_points(line.size)
            if size in self.characters or len(self.characters) < _MAX_SIZES:
                # Headers and footers repeat on every page; they must not pass for the body.
                self.characters[size] += len(line.text) if top < line.middle < bottom else 1
            if line.mono:
                self.mono_characters += len(line.text)
        self.vocabulary.add(line.text for line in page.lines if line.upright)
        self.headers_footers.add(page)

    def fonts(self) -> Fonts:
        """The document's fonts, once all pages were added."""
        total = self.characters.total()
        body = max(self.characters.items(), key=lambda item: (item[1], -item[0]))[0] if total else 10.0
        larger = sorted((size for size in self.characters if size >= 1.08 * body), reverse=True)
        ranks: list[float] = []
        for size in larger:  # sizes within 4 % of each other are one rank
            if not ranks or size < 0.96 * ranks[-1]:
                ranks.append(size)
        return Fonts(body=body, ranks=tuple(ranks), code=self.mono_characters * 2 < total)


@dataclass(frozen=True, slots=True)
class Fonts:
    """The body size, the larger sizes in descending ranks, and whether monospace means code here."""

    body: float
    ranks: tuple[float, ...]
    code: bool

    def level(self, size: float) -> int:
        """Heading level of a size, 1 for the largest, at most 6."""
        if size < 1.08 * self.body:
            return min(6, len(self.ranks) + 1)
        for index, rank in enumerate(self.ranks):
            if size >= 0.96 * rank:
                return min(6, index + 1)
        return min(6, len(self.ranks) + 1)
