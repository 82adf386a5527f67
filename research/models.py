"""The records that pass between the rooms: what is asked, what is found, and what a caller gets back.

Question → Item (Ref, Passage) → ResearchContext, of SourceDocuments, with its Coverage
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

if TYPE_CHECKING:
    from research.records import DocumentInfo
    from research.units import Structure, Unit

T = TypeVar("T")

Extent = Literal["fit", "passages", "pages"]
"""How much of each page is wanted: passages first and as much as fits, nothing but passages, or whole pages."""

AnsweredBy = Literal["pages", "documents"]
"""Whether an answer is the best pages, or, to a question for documents, the best documents with a page each."""

VISUAL_MATCH = "visual_match"
"""The label of a page that the visual leg itself has among its best."""
SUPERSEDED = "superseded"
"""The label of a memory that another says anew, and of a page whose document has a newer version that answers."""

NEWER_VERSION = " has a newer version: "
"""Stands in a note between two file names."""

REDACTED = "redacted"
"""The label of an item in which something is masked, because the policy says so."""
REFERENCE_ONLY = "reference_only"
"""The label of an item that comes without its text, because the policy says so."""
WITHHELD = "(withheld by policy)"
"""What stands where such a text would."""


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What one rewriter did to a question."""

    name: str  # of the rewriter
    before: str
    after: str
    why: str
    documents: tuple[str, ...] = ()  # ids of those whose pages are ranked by `after`; empty: it is the text searched


class Memo:
    """What was worked out about one question, by key: its vector, the statistics of its words.

    Threads of one question may share it: at worst two of them work out the same thing. `of_any` holds for whatever
    text the question is searched by: what is known of pages.
    """

    __slots__ = ("_known", "of_any")

    def __init__(self, of_any: Memo | None = None) -> None:
        self._known: dict[Hashable, object] = {}
        self.of_any = of_any or self

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = make()
        return cast("T", self._known[key])

    def put(self, key: Hashable, value: T) -> T:
        self._known[key] = value
        return value

    def known(self, key: Hashable) -> Any:
        """What is known by this key; None if nothing is."""
        return self._known.get(key)


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: the text, the text that is searched, and where."""

    text: str
    searched: str = ""  # the text as rewriters left it; the text itself where none did anything
    mode: str = "hybrid"
    documents: tuple[str, ...] | None = None  # only these ids; None: all
    pages: tuple[tuple[int, int], ...] = ()  # only these physical pages of them, first and last; none: all
    tenant: str = ""
    session: str = ""
    rewrites: tuple[Rewrite, ...] = ()  # what made `searched` of the text before any rewriter saw it
    where: Mapping[str, Any] | None = field(default=None, hash=False)  # what the metadata of items must be
    about: Mapping[str, float] = field(default_factory=dict, hash=False)  # documents a conversation is about → weight
    # Refs → those whose text may be sent to a model elsewhere; None: all.
    sendable: Callable[[Sequence[str]], Collection[str]] | None = field(default=None, compare=False, repr=False)
    memo: Memo = field(default_factory=Memo, compare=False, repr=False)
    notes: list[str] = field(default_factory=list, compare=False, repr=False)  # what went wrong, for coverage

    @property
    def wording(self) -> str:
        """What the legs search for."""
        return self.searched or self.text

    def searching(self, text: str) -> Question:
        """The same question, searched by another text; what was worked out about the old one does not hold for it."""
        if text == self.wording:
            return self
        return replace(self, searched=text, memo=self.memo.get(("searching", text), lambda: Memo(self.memo.of_any)))


@dataclass(frozen=True, slots=True)
class Ref:
    """The lasting name of an item: `page:<doc>#7`, `memory:<id>`, `commit:<sha>`."""

    kind: str
    key: str
    part: str = ""

    def __str__(self) -> str:
        return f"{self.kind}:{self.key}#{self.part}" if self.part else f"{self.kind}:{self.key}"

    @classmethod
    def parse(cls, text: str) -> Ref:
        kind, colon, rest = text.partition(":")
        key, _, part = rest.rpartition("#") if "#" in rest else (rest, "", "")
        if not (kind and colon and key):
            raise ValueError(f"{text!r} is no reference; one reads like page:<doc>#7")
        return cls(kind, key, part)


def page_link(path: str, page: int) -> str:
    """A URI that opens the file at the page, in whatever takes `#page=`. By the path that is stored: whether the file
    is still there is another question. Nothing of a name but letters, digits and -._~/ stays as it is."""
    from urllib.parse import quote

    if not path:
        return ""
    return f"file://{quote(os.fsencode(os.path.abspath(path)))}#page={page}"  # noqa: PTH100  resolves no links


@dataclass(frozen=True, slots=True)
class Passage:
    """The part of an item that fits the question, with its place: a span of the item's text, and a box of the page as
    fractions from top left. A passage that a visual model saw has a box and no text."""

    text: str
    score: float
    box: tuple[float, float, float, float] | None = None
    start: int = 0  # its characters in the page's markdown, as far as they stand on this page
    end: int = 0
    section_path: str = ""  # the headings it stands under
    pages: tuple[int, ...] = ()  # physical pages it stands on: two where a sentence runs on over a page break


@dataclass(frozen=True, slots=True)
class FoundPart:
    """The part of its document that a page was found for, and the heading that begins it; none on its later pages."""

    name: str  # "summary", "risks"; "outline" and "beginning" stand in for a summary
    heading: str = ""  # folded, without its number


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence, a row or a label with its value that may answer the question: verbatim, with its citation."""

    text: str
    citation: int  # the number of its source
    ref: str
    page: int  # physical, 1-based
    score: float
    start: int  # its characters in the page's markdown
    end: int
    box: tuple[float, float, float, float] | None = None
    header: str = ""  # title and header of the table that a row stands in, as far as they are not part of the text
    marked: tuple[int, int] = (0, 0)  # where in the text the sentence or row stands that seems to answer

    @property
    def in_table(self) -> str:
        """The text under the last line of its table's header, where it begins with a row; code as a block of code."""
        if self.ref.startswith("code:"):
            return f"```\n{self.text}\n```"
        header = self.header.rpartition("\n")[2]
        return f"{header}\n{self.text}" if " | " in header and " | " in self.text.partition("\n")[0] else self.text


CONFIDENCE_LEVELS = {"none": 0.0, "low": 0.08, "medium": 0.5, "high": 0.8}
"""Each level of confidence and the value it begins with. `none`: nothing that was found seems to answer."""

_LIKELY = {"high": "very likely", "medium": "probably", "low": "possibly"}


@dataclass(frozen=True, slots=True)
class Confidence:
    """How likely a page that answers the question is among those found."""

    value: float  # 0 to 1
    level: str  # "high", "medium", "low" or "none"

    @classmethod
    def of(cls, value: float) -> Confidence:
        rounded = round(value, 4)
        return cls(rounded, [level for level, least in CONFIDENCE_LEVELS.items() if rounded >= least][-1])

    @property
    def words(self) -> str:
        """What it tells of what was found, for people; of a quote it says nothing."""
        likely = _LIKELY.get(self.level)
        return f"The answer is {likely} on these pages" if likely else "Nothing seems to answer this"


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that a source found.

    `score` says how likely it is that this answers the question, 0 to 1, and means the same for every source; what it
    was made of stays beside it, in `raw_score` and `legs`.
    """

    ref: Ref
    title: str
    text: str
    score: float
    raw_score: float = 0.0
    legs: Mapping[str, LegScore] = field(default_factory=dict)
    passages: tuple[Passage, ...] = ()
    created_at: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()  # what makes its text suspicious: words of research.context.injection
    cut: bool = False  # parts of the text are left out, to fit the budget; […] stands where
    pages: tuple[int, ...] = ()  # physical pages of the text, where it runs on to the next
    structure: Structure | None = field(default=None, compare=False, repr=False)  # of the whole text, if it is known
    part: FoundPart | None = None  # of its document, if that was asked for

    @property
    def units(self) -> list[Unit]:
        """The sentences, rows and so on of its text; those that are stored, if it is still the text they are of."""
        return self.stored.units

    @property
    def stored(self) -> Structure:
        """Its text with what is stored of it; found anew, if it is no longer the text it was."""
        if self.structure is not None and self.structure.text == self.text:
            return self.structure
        from research.units import Structure, split_code

        return Structure(self.text, units=split_code(self.text) if self.ref.kind == "code" else None)

    @property
    def regions(self) -> list[MatchedRegion]:
        """Its passages as places on a page."""
        return [MatchedRegion(passage.box, passage.score) for passage in self.passages if passage.box is not None]


def withheld_of(item: Item) -> str:
    """What the policy left of its text: REDACTED, REFERENCE_ONLY, or empty for all of it."""
    return next((label for label in item.labels if label in (REDACTED, REFERENCE_ONLY)), "")


def section_of(item: Item) -> tuple[str, str]:
    """The headings that an item's best passage stands under, and the last of them; the page's own without passages."""
    path = next((passage.section_path for passage in item.passages if passage.end > passage.start), "")
    if not path:
        return str(item.metadata["section_path"]), str(item.metadata["parent_heading"])
    return path, path.rsplit(" > ", 1)[-1]


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
    relevance_score: float = 0.0  # how likely it is that the page answers, 0 to 1
    page_label: str = ""  # the printed number, where it differs from the physical one
    source_path: str = ""
    title: str = ""
    cut: bool = False  # parts of the page are left out of markdown_content, to fit the budget; […] stands where
    ocr: bool = False  # some or all of its text was read from a picture
    ocr_engine: str = ""
    visual_match: bool = False  # the visual leg itself has it among its best
    regions: list[MatchedRegion] = field(default_factory=list)
    legs: dict[str, LegScore] = field(default_factory=dict)
    suspicious: list[str] = field(default_factory=list)  # words of research.context.injection
    ref: str = ""  # the page's lasting name
    raw_score: float = 0.0  # the sum of the legs that relevance_score was made of
    passages: list[Passage] = field(default_factory=list)  # the parts that fit the question, best first
    pages: list[int] = field(default_factory=list)  # physical pages of the text: two where a sentence runs on
    link: str = ""  # opens the file at the page
    file_id: str = ""  # the document's lasting id: it stays when the file's content, and with it doc_id, changes
    withheld: str = ""  # by the policy: REDACTED or REFERENCE_ONLY; empty: nothing of it
    structure: Structure | None = field(default=None, compare=False, repr=False)  # of the whole text, if it is known

    @property
    def kind(self) -> str:
        return "page"

    @property
    def name(self) -> str:
        """As its header has it, after the number."""
        return f"{self.filename}, Page {self.page}"

    @property
    def label(self) -> str:
        """As it is called beside a quote of it: its file, or what it is."""
        return self.filename if self.page else f"{self.kind.capitalize()}: {self.filename}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready copy of all fields; `withheld` only where something is."""
        fields = asdict(replace(self, structure=None))
        del fields["structure"]
        return fields if self.withheld else {name: value for name, value in fields.items() if name != "withheld"}


@dataclass
class SourceItem(SourceDocument):
    """One cited thing that is no page: code, a commit, a memory, an experience, a value. `filename` is its name, as its
    header has it, and `page` is 0."""

    kind: str = ""  # the first word of its ref
    metadata: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.filename

    def to_dict(self) -> dict[str, Any]:
        """What it has in common with a page, and its own facts."""
        fields = super().to_dict()
        shown = (
            "ref title markdown_content relevance_score timestamp link cut suspicious legs raw_score metadata withheld"
        )
        return {name: fields[name] for name in shown.split() if name in fields}


@dataclass
class DroppedSource:
    """A page that was found but did not fit the budget; where several sources were asked, whatever it is: `page` is 0
    if it is no page, and `filename` its name."""

    doc_id: str
    filename: str
    page: int
    relevance_score: float
    ref: str = ""
    link: str = ""


@dataclass
class LegCoverage:
    """Whether a leg took part: "ok", "failed" or "off", and why not."""

    name: str
    status: str
    reason: str = ""


@dataclass
class SourceCoverage:
    """How a source took part: "ok", "degraded" (some of it), "down" or "off", and why."""

    name: str
    status: str
    reason: str = ""


@dataclass
class Coverage:
    """What the answer rests on, and what it could not see."""

    sources: list[SourceCoverage] = field(default_factory=list)
    legs: list[LegCoverage] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # what went another way than usual, a sentence each
    pages: int = 0  # pages searched
    pages_without_vectors: int = 0  # known to the lexical leg only, for now
    pages_without_text: int = 0
    pages_without_visual: int = 0  # not seen yet by the visual model, where one is in use

    @property
    def complete(self) -> bool:
        return self.pages_without_vectors == self.pages_without_visual == 0 and all(
            leg.status != "failed" for leg in self.legs
        )

    def noting(self, notes: Iterable[str]) -> Coverage:
        """With these notes, each once; what a leg has failed for is told by the leg."""
        told = [leg.reason for leg in self.legs if leg.status == "failed"]
        new = [note for note in dict.fromkeys(notes) if not any(reason in note for reason in told)]
        return replace(self, notes=new)

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
    searched: str = ""  # what was really searched
    rewrites: list[Rewrite] = field(default_factory=list)  # and how it came about
    answered_by: AnsweredBy = "pages"
    quotes: list[Quote] = field(default_factory=list)  # the sentences that most likely answer, best first
    confidence: Confidence | None = None  # None: nothing was asked
    session: str = ""  # the conversation it was asked in
    turn: int = 0  # its number there; 0: it is not kept
    follows: str = ""  # the question before it, if it leans on that
    types: tuple[str, ...] = ()  # the sources that were asked, if they were named

    def get_citation_map(self) -> dict[int, SourceDocument]:
        """Citation number (1, 2, 3 …) → source."""
        return dict(enumerate(self.sources, start=1))

    @property
    def sure(self) -> str:
        """How sure it is, for people: of pages, or of what else is quoted first."""
        words = self.confidence.words if self.confidence else ""
        first = self.sources[self.quotes[0].citation - 1] if self.quotes else None
        if first is None or first.kind == "page":
            return words
        day = f" of {first.timestamp[:10]}" if first.kind in ("memory", "commit") and first.timestamp else ""
        return words.replace("on these pages", f"in this {first.kind}{day}")

    @property
    def asked(self) -> str:
        """The question for a model that does not know the conversation."""
        return f"{self.query} (It goes on from the question before it: {self.follows})" if self.follows else self.query

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready copy; each source carries its citation number."""
        return {
            "query": self.query,
            "searched": self.searched,
            "rewrites": [asdict(rewrite) for rewrite in self.rewrites],
            "answered_by": self.answered_by,
            "confidence": asdict(self.confidence) if self.confidence else None,
            "quotes": [asdict(quote) for quote in self.quotes],
            "formatted_text": self.formatted_text,
            "sources": [self._cited(number, source) for number, source in self.get_citation_map().items()],
            "total_tokens": self.total_tokens,
            "max_tokens": self.max_tokens,
            "truncated": self.truncated,
            "dropped": [asdict(source) for source in self.dropped],
            "coverage": self.coverage.to_dict(),
            "timings": self.timings,
            **({"session": {"name": self.session, "turn": self.turn}} if self.session else {}),
            **({"types": list(self.types)} if self.types else {}),
        }

    def _cited(self, number: int, source: SourceDocument) -> dict[str, Any]:
        named = {"kind": source.kind, "name": source.name} if self.types else {}
        return {"citation": number, **named, **source.to_dict()}


@dataclass(frozen=True, slots=True)
class PageResult:
    """One page of a ranking. The fields are those of the JSON document, and bear the names of a `SourceDocument`'s."""

    citation: int  # its number, from 1, best first
    doc_id: str
    filename: str
    page: int
    page_label: str
    section_path: str | None
    relevance_score: float  # how likely it is that the page answers, 0 to 1
    raw_score: float
    snippet: str
    ref: str
    link: str  # opens the file at the page
    title: str
    source_path: str
    ocr: bool
    image_path: str | None
    thumbnail_path: str | None
    visual_match: bool
    regions: list[MatchedRegion]
    legs: dict[str, LegScore]
    suspicious: list[str]
    file_id: str  # the document's lasting id

    @classmethod
    def of(cls, item: Item, citation: int, snippet: str) -> PageResult:
        facts = item.metadata
        return cls(
            citation=citation,
            doc_id=item.ref.key,
            filename=str(facts["filename"]),
            page=int(item.ref.part),
            page_label=str(facts["page_label"]),
            section_path=section_of(item)[0] or None,
            relevance_score=item.score,
            raw_score=item.raw_score,
            snippet=snippet,
            ref=str(item.ref),
            link=page_link(str(facts["source_path"]), int(item.ref.part)),
            title=item.title,
            source_path=str(facts["source_path"]),
            ocr=bool(facts["ocr"]),
            image_path=str(facts["image_path"]) or None,
            thumbnail_path=str(facts["thumb_path"]) or None,
            visual_match=VISUAL_MATCH in item.labels,
            regions=item.regions,
            legs=dict(item.legs),
            suspicious=list(item.signals),
            file_id=str(facts.get("file_id", "")),
        )


@dataclass(frozen=True, slots=True)
class SearchResults:
    """Ranked pages, and what the ranking rests on."""

    query: str
    results: list[PageResult]
    coverage: Coverage
    timings: dict[str, float]
    searched: str
    rewrites: list[Rewrite]
    answered_by: AnsweredBy = "pages"
    confidence: Confidence | None = None  # None: nothing was asked

    def to_dict(self) -> dict[str, Any]:
        return {
            "query": self.query,
            "searched": self.searched,
            "rewrites": [asdict(rewrite) for rewrite in self.rewrites],
            "answered_by": self.answered_by,
            "confidence": asdict(self.confidence) if self.confidence else None,
            "results": [asdict(result) for result in self.results],
            "coverage": self.coverage.to_dict(),
            "timings": self.timings,
        }


@dataclass(frozen=True, slots=True)
class PageView:
    """One page as it is stored. `problem`: why a visual model could not look for the places on it."""

    item: Item
    num_pages: int
    error: str = ""  # why the page could not be read, if so
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        """By the names of a `SourceDocument`; what a page has not is None there, too."""
        facts = dict(self.item.metadata)
        thumbnail = facts.pop("thumb_path", "")
        optional = {name: facts.get(name) or None for name in ("image_path", "section_path", "parent_heading")}
        return {
            **facts,
            **optional,
            "thumbnail_path": thumbnail or None,
            "title": self.item.title,
            "ref": str(self.item.ref),
            "link": page_link(str(facts["source_path"]), int(self.item.ref.part)),
            "num_pages": self.num_pages,
            "error": self.error,
            "suspicious": list(self.item.signals),
            "markdown_content": self.item.text,
            "regions": [asdict(region) for region in self.item.regions],
        }


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """A heading: how deep it stands, from 1, and its physical page."""

    level: int
    title: str
    page: int
    page_label: str = ""


@dataclass(frozen=True, slots=True)
class PageBeginning:
    """What a page begins with, for documents without headings."""

    page: int
    page_label: str
    text: str


@dataclass(frozen=True, slots=True)
class DocumentOutline:
    """A document's headings with their pages; where it has none, how its pages begin."""

    document: DocumentInfo
    entries: list[OutlineEntry]
    pages: list[PageBeginning]

    def down_to(self, depth: int | None) -> DocumentOutline:
        """Without what stands deeper."""
        kept = [entry for entry in self.entries if depth is None or entry.level <= depth]
        return DocumentOutline(self.document, kept, self.pages)

    def to_dict(self) -> dict[str, Any]:
        info = self.document
        return {
            "doc_id": info.doc_id,
            "filename": info.filename,
            "title": info.title,
            "num_pages": info.num_pages,
            "source_path": info.source_path,
            "entries": [{**asdict(entry), **self._place(entry.page)} for entry in self.entries],
            "pages": [{**asdict(page), **self._place(page.page)} for page in self.pages],
        }

    def _place(self, page: int) -> dict[str, str]:
        ref = Ref("page", self.document.doc_id, str(page))
        return {"ref": str(ref), "link": page_link(self.document.source_path, page)}


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a source found, best first, and how it went."""

    items: Sequence[Item]
    status: SourceCoverage
    coverage: Coverage | None = None  # what documents could not see; other sources have none
    timings: dict[str, float] = field(default_factory=dict)
    searched: str = ""
    rewrites: list[Rewrite] = field(default_factory=list)
    answered_by: AnsweredBy = "pages"
    notes: tuple[str, ...] = ()  # what went another way than usual, a sentence each
    fresh: object = None  # vectors that were made for the question, for whoever keeps them


def labelled(items: Sequence[Item], labels: Mapping[str, str]) -> Sequence[Item]:
    """The items with what a policy left of them, if it left less than all. `labels`: of masked ones, by ref."""
    if not labels:
        return items
    return [
        replace(item, labels=(*item.labels, labels[str(item.ref)])) if str(item.ref) in labels else item
        for item in items
    ]
