"""What is to be seen of an answer, decided once: a terminal, a file of HTML and the web page show this record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from research.records import Box
from research.text import block, one_line, phrase

if TYPE_CHECKING:
    from jinja2 import Template

    from research.markdown import Marker
    from research.models import Coverage, Quote, ResearchContext, SourceDocument

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
