"""The renderers of a context: numbered citations with the text under each, and the records that callers get.

[Document 1: crisis.pdf, Page 3]
[Code 2: src/dates.py:10, parse_date]
[Commit 3: 1a2b3c4, 2025-01-02]
[Memory 4: decision, 2025-01-02]
[Experience 5: debugging, read-the-error, falsified]
[Value 6: root_cause, 12 experiences]

And what is to be seen of an answer, decided once: a terminal, a file of HTML and the web page show this record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from research.context import escape
from research.models import (
    VISUAL_MATCH,
    DroppedSource,
    Item,
    Ref,
    ResearchContext,
    SourceDocument,
    SourceItem,
    page_link,
    section_of,
    withheld_of,
)
from research.records import Box
from research.text import block, one_line, phrase

if TYPE_CHECKING:
    from jinja2 import Template

    from research.context.pipeline import Context
    from research.markdown import Marker
    from research.models import Coverage, Quote, ResearchContext, SourceDocument

_LONGEST_NAME = 200  # characters
_FACTS: Mapping[str, tuple[str, ...]] = {
    "code": ("file_path", "start_line", "end_line", "language", "qualified_name", "unit_type"),
    "commit": ("sha", "author", "timestamp", "files_changed", "insertions", "deletions"),
    "memory": ("type", "category", "session", "namespace", "persona", "speaker"),
    "experience": ("domain", "strategy", "outcome_status", "confidence_tier", "iteration_count"),
    "value": ("axis", "cluster_id", "cluster_size"),
}
"""What is told of an item beside its text."""


class CitedPages:
    """`[Document 1: crisis.pdf, Page 3]` above each page's text."""

    def joint(self, before: Item | None, item: Item) -> str:
        return "\n\n" if before else ""

    def entry(self, item: Item, number: int) -> str:
        return f"{self.header(item, number)}\n{self.body(item.text)}"

    def end(self, items: Sequence[Item]) -> str:
        return ""

    def header(self, item: Item, number: int) -> str:
        return header(item.ref.kind, name_of(item), number)

    def body(self, text: str) -> str:
        return escape.cited(text)


class CitedItems(CitedPages):
    """Items of several sources. Code stands in a block, which is closed where it is cut."""

    def body(self, text: str) -> str:
        return escape.closed(escape.cited(text))


def header(kind: str, name: str, number: int) -> str:
    """The line above a source of this kind, whose name is safe already."""
    return f"[{'Document' if kind == 'page' else kind.capitalize()} {number}: {name}]"


def name_of(item: Item) -> str:
    """What stands behind the number in an item's header, on one line and safe."""
    if item.ref.kind == "page":
        return f"{escape.name(str(item.metadata['filename']))}, Page {item.ref.part}"
    return ", ".join(escape.one_line(str(part), _LONGEST_NAME) for part in _told(item) if str(part).strip())


def _told(item: Item) -> tuple[object, ...]:
    """What a header names of an item that is no page."""
    facts, day = item.metadata, item.created_at[:10]
    match item.ref.kind:
        case "code":
            return f"{facts.get('file_path') or item.ref.key}:{facts.get('start_line', 1)}", item.title
        case "commit":
            return item.ref.key[:7], day
        case "memory":
            return facts.get("category") or facts.get("type") or "memory", day, standing(item)
        case "experience":
            return facts.get("domain", ""), facts.get("strategy", ""), facts.get("outcome_status", "")
        case _:
            return facts.get("axis", ""), _experiences(facts.get("cluster_size", 0))


def standing(item: Item) -> str:
    """What a memory is that a newer one stands before; empty for any other."""
    return "superseded" if item.metadata.get("superseded_by") else "older" if item.metadata.get("newer") else ""


def _experiences(count: object) -> str:
    return f"{count} experience{'s' * (count != 1)}"


def research_context(context: Context, max_tokens: int, types: tuple[str, ...] = ()) -> ResearchContext:
    """Return what callers get; sources that are no pages are `SourceItem`. `types`: of the sources that were asked."""
    fitted, found = context.fitted, context.found
    return ResearchContext(
        formatted_text=fitted.text,
        sources=[source_of(item) for item in fitted.items],
        total_tokens=fitted.tokens,
        truncated=fitted.truncated,
        query=found.question.text,
        max_tokens=max_tokens,
        dropped=[_dropped(item) for item in fitted.dropped],
        coverage=found.coverage,
        timings=found.timings,
        searched=found.searched,
        rewrites=found.rewrites,
        answered_by=found.answered_by,
        confidence=found.confidence,
        types=types,
    )


def source_of(item: Item) -> SourceDocument:
    if item.ref.kind != "page":
        return _source_item(item)
    facts = item.metadata
    section_path, parent_heading = section_of(item)
    return SourceDocument(
        doc_id=item.ref.key,
        filename=str(facts["filename"]),
        page=int(item.ref.part),
        extension=str(facts["extension"]),
        thumbnail_path=str(facts["thumb_path"]) or None,
        image_path=str(facts["image_path"]) or None,
        timestamp=item.created_at,
        section_path=section_path or None,
        parent_heading=parent_heading or None,
        markdown_content=item.text,
        relevance_score=item.score,
        page_label=str(facts["page_label"]),
        source_path=str(facts["source_path"]),
        title=item.title,
        cut=item.cut,
        ocr=bool(facts["ocr"]),
        ocr_engine=str(facts["ocr_engine"]),
        visual_match=VISUAL_MATCH in item.labels,
        regions=item.regions,
        legs=dict(item.legs),
        suspicious=list(item.signals),
        ref=str(item.ref),
        raw_score=item.raw_score,
        link=page_link(str(facts["source_path"]), int(item.ref.part)),
        file_id=str(facts.get("file_id", "")),
        passages=list(item.passages),
        pages=list(item.pages) or [int(item.ref.part)],
        withheld=withheld_of(item),
        structure=item.structure if item.structure and item.structure.text == item.text else None,  # of what is shown
    )


def _source_item(item: Item) -> SourceItem:
    facts: dict[str, Any] = {name: item.metadata[name] for name in _FACTS[item.ref.kind] if name in item.metadata}
    if "files_changed" in facts:
        facts["files"] = list(facts.pop("files_changed"))
    return SourceItem(
        doc_id="",
        filename=name_of(item),
        page=0,
        extension="",
        timestamp=item.created_at,
        markdown_content=item.text,
        relevance_score=item.score,
        title=item.title,
        cut=item.cut,
        passages=[] if item.ref.kind == "code" else list(item.passages),  # code stands in its block
        legs=dict(item.legs),
        suspicious=list(item.signals),
        ref=str(item.ref),
        raw_score=item.raw_score,
        link=_link(item),
        kind=item.ref.kind,
        metadata=facts,
        withheld=withheld_of(item),
    )


def _dropped(item: Item) -> DroppedSource:
    if item.ref.kind != "page":
        return DroppedSource("", name_of(item), 0, item.score, str(item.ref), _link(item))
    facts, page = item.metadata, int(item.ref.part)
    link = page_link(str(facts["source_path"]), page)
    return DroppedSource(item.ref.key, str(facts["filename"]), page, item.score, str(item.ref), link)


def _link(item: Item) -> str:
    """Opens the file of code at its line, in whatever takes that; other things have no file."""
    if item.ref.kind != "code":
        return ""
    return page_link(item.ref.key, 1).removesuffix("#page=1") + f"#L{item.metadata.get('start_line', 1)}"


def item_of(source: SourceDocument) -> Item:
    """A source of the contract as far as a renderer and the budget need it."""
    return Item(
        ref=Ref("page", source.doc_id, str(source.page)),
        title=source.title,
        text=source.markdown_content,
        score=source.relevance_score,
        metadata={"filename": source.filename},
        cut=source.cut,
    )


_FURTHER = 0.5  # of the first source's score, below which one that is not quoted is only counted
_LEAST_SOURCES = 3
_PASSAGES = 3  # of a source
_BEGINNING = 900  # characters of a page without passages
_NAMED = 3  # of the pages left out; JSON has them all
_MARGIN = 0.006, 0.003  # of a box, as part of the width and height of the page
# What stands in the place of a source's headings, where the policy has a say in it.
_WITHHELD = {"redacted": "masked by the policy", "reference_only": "not shown, by the policy"}


class Note(NamedTuple):
    """`kind` is follows, documents, coverage or budget."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source by its number. `page` has the physical page and the printed one where it is another; of what is no page
    it is empty."""

    number: int
    source: SourceDocument
    name: str
    page: str
    section: str  # or why it is withheld, or what it is, if no page
    passages: tuple[str, ...]  # that fit best; else the beginning
    boxes: tuple[Box, ...]  # of the passages on the page's picture

    @property
    def place(self) -> str:
        label = self.source.page_label
        printed = f" (printed {one_line(label)})" if label and label != str(self.source.page) else ""
        return f"page {self.source.page}{printed}" if self.page else self.source.kind


@dataclass(frozen=True, slots=True)
class QuoteView:
    quote: Quote
    name: str  # of its file, or what it is
    source: SourceView


@dataclass(frozen=True, slots=True)
class AnswerView:
    question: str
    sure: str  # how sure the answer is, in words
    level: str  # and in one
    unanswered: str  # what was searched in vain; empty where there may be an answer
    searched: str  # how much was looked at
    tokens: int
    fitted: str  # how many tokens of how many, where something was left out
    quotes: tuple[QuoteView, ...]  # none where nothing answers
    sources: tuple[SourceView, ...]
    listed: int  # sources that are quoted or not far behind the first
    notes: tuple[Note, ...]


def answer_view(
    context: ResearchContext, *, named: Callable[[str], str] = one_line, option: str = "--max-tokens"
) -> AnswerView:
    """Decide what is shown. `named` makes file names in notes fit; `option` raises the budget."""
    sources = tuple(_source(number, source) for number, source in context.get_citation_map().items())
    level = context.confidence.level if context.confidence else ""
    searched = f"{len(sources)} of {context.coverage.pages:,} pages"
    quotes = [QuoteView(each, one_line(sources[each.citation - 1].source.label), sources[each.citation - 1])
              for each in context.quotes]  # fmt: skip
    return AnswerView(
        question=phrase(context.query),
        sure=context.sure,
        level=level,
        unanswered=_unanswered(context) if level == "none" else "",
        searched=f"{len(sources)} sources" if context.types else searched,
        tokens=context.total_tokens,
        fitted=f"{context.total_tokens:,} of {context.max_tokens:,} tokens" if context.truncated else "",
        quotes=() if level == "none" else tuple(quotes),
        sources=sources,
        listed=_listed(context),
        notes=tuple(_notes(context, named, option)),
    )


def page_name(page: int, label: str) -> str:
    """The physical page, and the printed one where it is another."""
    return f"{page} ({one_line(label)})" if label and label != str(page) else str(page)


def coverage_notes(coverage: Coverage) -> list[str]:
    """What the answer could not see, a line each, with what to do about it."""
    failed: dict[str, list[str]] = {}
    for leg in coverage.legs:
        if leg.status == "failed":
            failed.setdefault(leg.reason, []).append(leg.name)
    notes = [
        f"{' and '.join(names)} search failed ({reason}); the results come from the rest; see: ctx doctor"
        for reason, names in failed.items()
    ]
    notes += coverage.notes
    for source in coverage.sources:
        if source.status == "down" and len(coverage.sources) > 1:
            notes.append(f"{source.name} could not be asked ({source.reason}); the others answer")
        elif source.status == "degraded" and source.name != "documents":
            notes.append(source.reason)
    if coverage.pages_without_vectors:
        waiting = f"{coverage.pages_without_vectors} of {coverage.pages} pages are searched by their words only"
        notes.append(f"{waiting}, until they are embedded; finish with: ctx ingest PATH")
    if coverage.pages_without_visual:
        waiting = f"{coverage.pages_without_visual} of {coverage.pages} pages have not been seen by the visual model"
        notes.append(f"{waiting}; finish with: ctx ingest PATH")
    return notes


def documents_note(count: int) -> str:
    return f"answered by {count} {'document' if count == 1 else 'documents'}, one page each"


def _source(number: int, source: SourceDocument) -> SourceView:
    passages = [passage for passage in source.passages if passage.text]
    section = next((each.section_path for each in source.passages if each.section_path), source.section_path or "")
    beginning = source.markdown_content[:_BEGINNING] + "…" * (len(source.markdown_content) > _BEGINNING)
    boxes = [each.box for each in source.passages if each.box] or [each.box for each in source.regions]
    return SourceView(
        number=number,
        source=source,
        name=one_line(source.filename),
        page=page_name(source.page, source.page_label) if source.page else "",
        section=_WITHHELD.get(source.withheld) or (phrase(section) if source.page else source.kind),
        passages=tuple(each.text for each in passages[:_PASSAGES]) or (beginning,),
        boxes=tuple(map(_grown, boxes)),
    )


def _grown(box: Box) -> Box:
    """A box a little wider, so that it touches no letter, and never outside of the picture."""
    x0, y0, x1, y1 = box
    dx, dy = _MARGIN
    left, top, right, bottom = (min(1.0, max(0.0, value)) for value in (x0 - dx, y0 - dy, x1 + dx, y1 + dy))
    return left, top, max(left, right), max(top, bottom)


def _unanswered(context: ResearchContext) -> str:
    pages = f"{context.coverage.pages:,} pages were" if context.coverage.pages != 1 else "1 page was"
    if context.types:
        pages = f"{', '.join(context.types)} were"
    return f"{pages} searched{', and these are the nearest' if context.sources else ''}"


def _listed(context: ResearchContext) -> int:
    first = context.sources[0].relevance_score if context.sources else 0.0
    near = [number for number, source in enumerate(context.sources, 1) if source.relevance_score >= _FURTHER * first]
    return min(len(context.sources), max(_LEAST_SOURCES, *near, *(quote.citation for quote in context.quotes), 0))


def _notes(context: ResearchContext, named: Callable[[str], str], option: str) -> list[Note]:
    notes: list[Note] = []
    if context.follows:  # unchanged, if something else has changed it as well
        added = phrase(context.searched.removeprefix(context.query))
        notes.append(Note("follows", f"searched with words of the question before: {added}"))
    if context.answered_by == "documents":
        notes.append(Note("documents", documents_note(sum(bool(source.page) for source in context.sources))))
    notes += [Note("coverage", text) for text in coverage_notes(context.coverage)]
    cut = [str(number) for number, source in context.get_citation_map().items() if source.cut]
    budget = []
    if cut:
        which = f"source {cut[0]} is" if len(cut) == 1 else f"sources {', '.join(cut[:-1])} and {cut[-1]} are"
        budget.append(f"truncated: {which} shown in part")
    if context.dropped:
        left = context.dropped[:_NAMED]
        names = ", ".join(f"{named(each.filename)}{f':{each.page}' * bool(each.page)}" for each in left)
        more = f" and {len(context.dropped) - _NAMED} more" if len(context.dropped) > _NAMED else ""
        budget.append(f"truncated: left out: {names}{more}")
    if context.truncated and budget:
        budget[-1] += f" (budget {context.max_tokens} tokens; raise it with {option})"
        notes += [Note("budget", text) for text in budget]
    return notes


# As HTML


class Shown(NamedTuple):
    """How a page of HTML shows a source: addresses, empty where there is none. `links` are further ones, by name."""

    picture: str = ""
    picture_link: str = ""
    link: str = ""
    links: tuple[tuple[str, str], ...] = ()


def answer_html(view: AnswerView | None, mark: Marker, shown: Callable[[SourceView], Shown], **page: Any) -> str:
    """The page of an answer, by the template `answer.html`, which has what `page` may say. All text is somebody else's:
    it is escaped, and without the characters that turn or hide what is read."""

    def parts(text: str) -> list[tuple[str, bool]]:
        found, end = [], 0
        for start, stop in mark(text):
            found += [(text[end:start], False), (text[start:stop], True)]
            end = stop
        return [*found, (text[end:], False)]

    from research.markdown import BULLET, blocks

    found = _template().render(view=view, parts=parts, blocks=blocks, bullet=BULLET, shown=shown, **page)
    return f"{found}\n"


@cache
def _template() -> Template:
    from jinja2 import Environment, FileSystemLoader

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: value if hasattr(value, "__html__") else block(str(value)),
    )
    return environment.get_template("answer.html")
