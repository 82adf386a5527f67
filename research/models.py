"""What a caller gets back: sources and the context built from them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class LegScore:
    """Where one leg ranked a page and what it scored; `parts` says how the score arose."""

    rank: int | None  # None: the leg did not return the page, its score was computed afterwards
    score: float
    parts: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class MatchedRegion:
    """Where on a page the answer seems to stand: x0, y0, x1, y1 as fractions of its width and height from top left."""

    box: tuple[float, float, float, float]
    score: float


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What one rewriter did to a question."""

    name: str  # of the rewriter
    before: str
    after: str
    why: str
    documents: tuple[str, ...] = ()  # ids of those whose pages are ranked by `after`; empty: it is the text searched


@dataclass
class SourceDocument:
    """One cited page."""

    doc_id: str
    filename: str
    page: int  # physical, 1-based
    extension: str
    thumbnail_path: str | None = None
    image_path: str | None = None
    timestamp: str = ""
    section_path: str | None = None
    parent_heading: str | None = None
    markdown_content: str = ""
    relevance_score: float = 0.0
    page_label: str = ""  # the printed number, where it differs from the physical one
    source_path: str = ""
    title: str = ""
    cut: bool = False  # markdown_content ends early, to fit the budget
    ocr: bool = False  # some or all of its text was read from a picture
    ocr_engine: str = ""
    visual_match: bool = False  # the visual leg itself has it among its best
    regions: list[MatchedRegion] = field(default_factory=list)
    legs: dict[str, LegScore] = field(default_factory=dict)
    suspicious: list[str] = field(default_factory=list)  # words of research.context.suspicion

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready copy of all fields."""
        return asdict(self)


@dataclass
class DroppedSource:
    """A page that was found but did not fit the budget."""

    doc_id: str
    filename: str
    page: int
    relevance_score: float


@dataclass
class LegCoverage:
    """Whether a leg took part: "ok", "failed" or "off", and why not."""

    name: str
    status: str
    reason: str = ""


@dataclass
class Coverage:
    """What the answer rests on, and what it could not see."""

    legs: list[LegCoverage] = field(default_factory=list)
    pages: int = 0  # pages searched
    pages_without_vectors: int = 0  # known to the lexical leg only, for now
    pages_without_text: int = 0
    pages_without_visual: int = 0  # not seen yet by the visual model, where one is in use

    @property
    def complete(self) -> bool:
        return self.pages_without_vectors == self.pages_without_visual == 0 and all(
            leg.status != "failed" for leg in self.legs
        )

    def to_dict(self) -> dict[str, Any]:
        return {"complete": self.complete, **asdict(self)}


@dataclass
class ResearchContext:
    """Cited text within a token budget."""

    formatted_text: str
    sources: list[SourceDocument]
    total_tokens: int
    truncated: bool
    query: str = ""
    max_tokens: int = 0
    dropped: list[DroppedSource] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)
    timings: dict[str, float] = field(default_factory=dict)  # seconds by step
    searched: str = ""  # the text that the legs got
    rewrites: list[Rewrite] = field(default_factory=list)  # what was done to the question, and where

    def get_citation_map(self) -> dict[int, SourceDocument]:
        """Citation number (1, 2, 3 …) → source."""
        return dict(enumerate(self.sources, start=1))

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready copy; each source carries its citation number."""
        return {
            "query": self.query,
            "searched": self.searched,
            "rewrites": [asdict(rewrite) for rewrite in self.rewrites],
            "formatted_text": self.formatted_text,
            "sources": [{"citation": number, **source.to_dict()} for number, source in self.get_citation_map().items()],
            "total_tokens": self.total_tokens,
            "max_tokens": self.max_tokens,
            "truncated": self.truncated,
            "dropped": [asdict(source) for source in self.dropped],
            "coverage": self.coverage.to_dict(),
            "timings": self.timings,
        }
