"""What the engine is given: legs that find pages, rewriters of what is searched, boosters that change the order.

And what it gives back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from research.models import AnsweredBy, Coverage, FoundPart, LegScore, Question, Rewrite
from research.store.catalog.pages import StoredPage, get_pages_with_text
from research.store.catalog.reader import Reader
from research.units import Structure


@dataclass(frozen=True, slots=True)
class Hit:
    """A page as one leg sees it. `parts` tells what `score` is made of.

    `gain` is for a leg that looks at the same evidence as another: only what it has beyond that one adds to the sum.
    """

    score: float
    parts: Mapping[str, float] = field(default_factory=dict)
    gain: float | None = None
    found: bool = True  # False: the leg has something to say of it, but would not have found it by itself


Hits = dict[int, Hit]
"""page_id → hit."""


class Leg(Protocol):
    """Scores are on a fixed scale (about 0–1) that does not depend on the other pages found.

    A leg keeps nothing of a question: what it works out goes into the question's memo. Many threads may use it.
    """

    @property
    def name(self) -> str: ...

    @property
    def depth(self) -> int:
        """How many of its pages it gives at least: so many that a page good in two legs is seen by one of them, and so
        few that it stays quick."""
        ...

    @property
    def follows(self) -> str:
        """The leg that must have looked before this one, because it builds on what that found; empty for none."""
        ...

    def why_off(self, reader: Reader) -> str:
        """Why this index has no such side; empty if it has one."""
        ...

    def candidates(self, reader: Reader, question: Question, depth: int) -> Collection[int]:
        """The best `depth` pages of the whole index, or a few more."""
        ...

    def score(self, reader: Reader, question: Question, page_ids: Sequence[int]) -> Hits:
        """The scores of given pages; pages the leg knows nothing of are left out."""
        ...


class Ranked(NamedTuple):
    """A page in a ranking."""

    page_id: int
    doc_id: str
    score: float


@dataclass(frozen=True, slots=True)
class Reranking:
    """Another text by which to rank the pages of these documents among themselves."""

    question: str
    documents: tuple[str, ...]
    keep_best: bool = False  # by the search before: a page that stands out stays, and none of the first falls far
    named: float = 0.0  # the share of the question that names these documents, and that the other text is without
    meant: int = 1  # documents that the name may mean, here or elsewhere
    rewrite: Rewrite | None = None  # what is to be told of it


class Rewriters(Protocol):
    """What changes the text that is searched, and says so."""

    def before(self, text: str, reader: Reader, /) -> tuple[str, list[Rewrite]]:
        """The text to search, and what was done to make it of the question."""
        ...

    def rerankings(
        self, question: Question, rewrites: Sequence[Rewrite], reader: Reader, ranked: Sequence[Ranked], /
    ) -> Sequence[Reranking]:
        """What to rank anew after the question was searched by the text that `rewrites` made."""
        ...

    def merge(self, plain: Sequence[Ranked], other: Sequence[Ranked], reranking: Reranking) -> Sequence[Ranked]:
        """The plain ranking with the pages of the reranking's documents in the order of the other one."""
        ...


@dataclass(frozen=True, slots=True)
class Boosted:
    """A ranking, the pages in it that were moved, and what it answers by: pages, or documents with a page each."""

    ranked: Sequence[Ranked]
    pages: Collection[int] = ()
    answered_by: AnsweredBy = "pages"
    parts: Mapping[int, FoundPart] = field(default_factory=dict)  # of their documents, that such pages hold


class Booster(Protocol):
    """What changes the order of what was found. Its name stands among the legs of the pages it moved."""

    @property
    def name(self) -> str: ...

    def concerns(self, question: str) -> bool:
        """Whether a question may concern it, told quickly: most do not."""
        ...

    def boost(self, question: Question, reader: Reader, ranked: Sequence[Ranked]) -> Boosted:
        """The pages in their new order. Pages that no leg found may join."""
        ...


@dataclass(frozen=True, slots=True)
class Reranked:
    """A ranking in another order, and what its pages scored by that, by page_id."""

    ranked: Sequence[Ranked]
    scores: Mapping[int, LegScore] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Chosen:
    """What of the order the question chose itself: pages that a booster put in their places, pages in the order of the
    lines that a ratio is computed from, and documents that it names."""

    boosted: set[int] = field(default_factory=set)
    by_lines: set[int] = field(default_factory=set)
    documents: set[str] = field(default_factory=set)


class PageOrder(Protocol):
    """What looks at the first pages of a ranking once more, all of them together. Fails by a note, never by raising."""

    @property
    def name(self) -> str:
        """Under which its scores stand among the legs of a page."""
        ...

    def rerank(self, reader: Reader, question: Question, ranked: Sequence[Ranked], chosen: Chosen) -> Reranked:
        """The pages in their new order, which may not go against what was chosen."""
        ...


@dataclass(frozen=True, slots=True)
class Weights:
    """What each leg counts, by its name.

    `shares` are parts of one sum. A leg outside it changes the sum of the others: by a share of what it has beyond
    them (`gains`, for hits that tell their gain), or by taking a share of the whole (`blends`).
    """

    shares: Mapping[str, float]
    gains: Mapping[str, float]
    blends: Mapping[str, float]


# From sweeps on four development sets, flat around the optimum (RETRIEVAL.md). A lexical score of 1 is far rarer than a
# cosine of 1, hence its larger share. What a line of a scan has beyond its passage: .10 and .20 did as well as .15. The
# third of a visual model is not measured: no trained weights could be had, so it counts as one of three.
DEFAULT_WEIGHTS = Weights(
    shares={"lexical": 0.63, "dense": 0.37},
    gains={"visual": 0.15},
    blends={"visual": 1 / 3},
)


@dataclass(frozen=True, slots=True)
class Found:
    """A page with its text, its score and how each leg saw it."""

    page: StoredPage
    text: Structure  # its markdown and units; empty for candidates after the results
    score: float  # the weighted sum, 0 to 1
    legs: dict[str, LegScore]
    part: FoundPart | None = None


@dataclass(frozen=True, slots=True)
class SearchOutcome:
    found: list[Found]
    coverage: Coverage
    timings: dict[str, float] = field(default_factory=dict)
    searched: str = ""
    rewrites: list[Rewrite] = field(default_factory=list)
    candidates: list[Found] = field(default_factory=list)  # every page that a leg named, where that was asked for
    answered_by: AnsweredBy = "pages"


def pages_with_text(
    reader: Reader, question: Question, page_ids: Sequence[int]
) -> dict[int, tuple[StoredPage, Structure]]:
    """Pages that are there, by id, with their texts; a question reads each of them once."""
    known: dict[int, tuple[StoredPage, Structure]] = question.memo.of_any.get("pages", dict)
    known.update(get_pages_with_text(reader, [page_id for page_id in page_ids if page_id not in known]))
    return {page_id: known[page_id] for page_id in page_ids if page_id in known}
