"""ctx search: ranked pages with a snippet, without the context."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any

import typer

from cli.options import (
    DebugOption,
    DocOption,
    ExplainOption,
    IndexOption,
    JsonOption,
    ModeOption,
    QuestionArgument,
    QuietOption,
    ResultsOption,
    common,
    settings_for,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from cli.views import Scored
    from research.search.engine import Found, SearchOutcome
    from research.store.catalog.catalog import Catalog

DETAILS = """
In a pipe each result is one line of tab-separated fields: rank, score, file:page, snippet.
"""

EPILOG = """
\b
Examples:
  ctx search "interest rate risk"
  ctx search "interest rate risk" --mode lexical --num-results 3
  ctx search "interest rate risk" --json | jq '.results[0]'
"""


@dataclass(frozen=True, slots=True)
class Result:
    """One page found. The fields are those of the JSON document."""

    rank: int
    doc_id: str
    filename: str
    page: int
    page_label: str
    section_path: str | None
    score: float
    snippet: str
    ocr: bool
    image_path: str | None
    thumbnail_path: str | None
    visual_match: bool
    regions: list[dict[str, Any]]
    legs: dict[str, Any]
    suspicious: list[str]


def command(
    ctx: typer.Context,
    *,
    question: QuestionArgument,
    num_results: ResultsOption = None,
    mode: ModeOption = None,
    doc: DocOption = None,
    explain: ExplainOption = False,
    as_json: JsonOption = False,
    index: IndexOption = None,
    quiet: QuietOption = False,
    debug: DebugOption = False,
) -> int:
    from cli.output import complain, on_terminal, paint, say, write_document
    from cli.question import check_legs, notes_on, open_index, read_question
    from research.errors import NothingFoundError
    from research.search.engine import SearchEngine

    given = common(ctx, index, quiet)
    asked = read_question(question)
    settings = settings_for(given, num_results=num_results, mode=mode.value if mode else None)
    with open_index(given, settings, doc) as opened:
        engine = SearchEngine(opened.client, device=settings.device, named_encoders=settings.named_encoders)
        outcome = engine.run(asked, settings.num_results, settings.mode, documents=opened.documents)
        check_legs(outcome.coverage)
        outcome, texts = still_there(opened.client.catalog, outcome)
        results = [_result(asked, *shown) for shown in zip(count(1), outcome.found, texts, strict=False)]
    if as_json:
        document = {
            "query": asked,
            "results": [asdict(result) for result in results],
            "coverage": outcome.coverage.to_dict(),
            "timings": outcome.timings,
        }
        write_document("ctx.search/1", document)
    elif on_terminal():
        paint(_rendering(results, outcome, explain=explain))
    else:
        _write_plain(results, outcome, explain=explain)
    if not given.quiet:
        for note in notes_on(outcome.coverage):
            say(f"ctx: note: {note}")
        for note in [] if as_json else _suspicions(results):
            say(f"ctx: note: {note}")
    if results:
        return 0
    nothing = NothingFoundError("nothing found for this question", hint="try other words, or see: ctx list")
    complain(nothing, as_json=False)
    return nothing.exit_code


def still_there(catalog: Catalog, outcome: SearchOutcome) -> tuple[SearchOutcome, list[str]]:
    """The outcome without the pages that were removed since the search, and the markdown of the others."""
    from research.store.catalog.pages import page_markdown

    texts = [page_markdown(catalog, found.page.doc_id, found.page.page) for found in outcome.found]
    found = [entry for entry, text in zip(outcome.found, texts, strict=True) if text is not None]
    return replace(outcome, found=found), [text for text in texts if text is not None]


def _result(question: str, rank: int, found: Found, markdown: str) -> Result:
    from research.context.suspicion import signs_of
    from research.search.snippets import snippet

    page = found.page
    return Result(
        rank=rank,
        doc_id=page.doc_id,
        filename=page.filename,
        page=page.page,
        page_label=page.label,
        section_path=page.section_path or None,
        score=found.score,
        snippet=snippet(markdown, question),
        ocr=bool(page.ocr_engine),
        image_path=page.image_path or None,
        thumbnail_path=page.thumb_path or None,
        visual_match=found.visual_match,
        regions=[asdict(region) for region in found.regions],
        legs={name: asdict(leg) for name, leg in found.legs.items()},
        suspicious=signs_of(markdown, filename=page.filename, title=page.title),
    )


def _suspicions(results: list[Result]) -> list[str]:
    from cli.terminal import one_line
    from cli.views import suspicion_note

    return [
        suspicion_note(f"result {found.rank} ({one_line(found.filename)}:{found.page})", found.suspicious)
        for found in results
        if found.suspicious
    ]


def _write_plain(results: list[Result], outcome: SearchOutcome, *, explain: bool) -> None:
    from cli.output import say, write_line
    from cli.terminal import phrase

    for result in results:
        write_line(result.rank, f"{result.score:.3f}", f"{result.filename}:{result.page}", phrase(result.snippet))
    if explain:
        from cli.views import explain_lines

        for line in explain_lines(_scored(outcome.found)):
            say(line)


def _rendering(results: list[Result], outcome: SearchOutcome, *, explain: bool) -> Iterator[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    from cli.terminal import one_line, phrase
    from cli.views import explain_table, page_name, plain

    for result in results:
        yield Text.assemble(
            (f"{result.rank:>2}. ", "bold"),
            (one_line(result.filename), "bold cyan"),
            f"  page {page_name(result.page, result.page_label)}",
            (f"  {result.score:.3f}", "dim"),
        )
        if result.section_path:
            yield Padding(plain(phrase(result.section_path), "dim"), (0, 0, 0, 4))
        yield Padding(plain(phrase(result.snippet)), (0, 0, 1, 4))
    if explain and results:
        yield explain_table(_scored(outcome.found))


def _scored(found: list[Found]) -> list[Scored]:
    from cli.views import Scored

    return [
        Scored(rank, f.page.filename, f.page.page, f.page.label, f.page.section_path, f.score, f.legs)
        for rank, f in enumerate(found, start=1)
    ]
