"""ctx search: ranked pages with a snippet, without the context."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import typer

from cli.options import (
    ExplainOption,
    QuestionArgument,
    RerankerOption,
    common,
    settings_for,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

    from cli.answer_view import Screen
    from cli.views import Scored
    from research.markdown import Marker
    from research.models import PageResult, SearchResults
    from research.settings import Settings

DETAILS = """
Shows of each page the sentence that fits best, with the words that fit in bold; ctx open 1 shows the page itself.
Where nothing seems to answer, it says so, and exits with 3.
In a pipe each result is one line of tab-separated fields: rank, score, file:page, snippet.
"""

EPILOG = """
\b
Examples:
  ctx search "interest rate risk"
  ctx search "interest rate risk" --mode lexical --num-results 3
  ctx search "interest rate risk" --doc 'papers/*' --not-doc survey.pdf --pages 1-10
  ctx search "interest rate risk" --json | jq '.results[0]'
"""

DOOR = "ctx search"

_INDENT = 5
_LINES = 2  # of the sentence that fits


def command(
    ctx: typer.Context,
    *,
    question: QuestionArgument,
    reranker: RerankerOption = None,
    explain: ExplainOption = False,
) -> int:
    from cli.kept import remember
    from cli.options import asked_for, check_legs, notes_on, opened, read_question, tell
    from cli.output import on_terminal, paint, say, write_document
    from cli.views import documents_note, end, nothing_found

    given = common(ctx)
    asked = read_question(question, quiet=given.quiet)
    request = asked_for(ctx, DOOR, asked)
    settings = settings_for(given, reranker=reranker)
    with opened(settings) as asked_of:
        tell(asked_of.prepare(), given)
        found = asked_of.search(request, highlights=given.as_json)
        nothing = nothing_found(asked_of, request, found.confidence, next(iter(found.results), None))
    check_legs(found.coverage)
    remember(asked_of.root, [result.ref for result in found.results])
    if given.as_json:
        write_document("ctx.search/2", found.to_dict())
    elif on_terminal():
        paint(_rendering(found, partial(asked_of.documents.matches, question=asked), settings, explain=explain))
    else:
        _write_plain(found, explain=explain)
    if not given.quiet:
        if found.answered_by == "documents":
            say(f"ctx: note: {documents_note(len(found.results))}")
        for note in notes_on(found.coverage):
            say(f"ctx: note: {note}")
    return end(nothing)


def _write_plain(found: SearchResults, *, explain: bool) -> None:
    from cli.output import say, write_line
    from research.text import phrase

    for result in found.results:
        write_line(
            result.citation, f"{result.relevance_score:.3f}", f"{result.filename}:{result.page}", phrase(result.snippet)
        )
    if explain:
        from cli.views import explain_lines, rewrite_lines

        for line in (*rewrite_lines(found.searched, found.rewrites), *explain_lines(_scored(found.results))):
            say(line)


def _rendering(found: SearchResults, mark: Marker, settings: Settings, *, explain: bool) -> Iterator[RenderableType]:
    from cli.answer_view import Screen
    from cli.layout import has_links
    from cli.output import screen_size
    from cli.views import explain_table, plain, rewrite_lines

    screen = Screen(*screen_size(), has_links(settings.links))
    # two lines of the sentence where the screen has them
    count = _LINES if len(found.results) * (1 + _LINES) <= screen.room else 1
    for result in found.results:
        yield from _result(result, screen, mark, count)
    if explain:
        yield from (plain(line, "dim") for line in rewrite_lines(found.searched, found.rewrites))
    if explain and found.results:
        yield explain_table(_scored(found.results))


def _result(result: PageResult, screen: Screen, mark: Marker, count: int) -> Iterator[Text]:
    from cli.answer_view import page_line
    from cli.layout import excerpt, passage_lines
    from cli.views import page_name
    from research.markdown import Block
    from research.text import block

    yield page_line(
        screen,
        f"[{result.citation}]".rjust(_INDENT - 1),
        result.filename,
        page_name(result.page, result.page_label),
        section=result.section_path or "",
        uri=result.link,
        score=f"  {result.relevance_score:.3f}",
    )
    width = screen.width - _INDENT
    sentence = passage_lines([Block("text", " ".join(block(result.snippet).split()))], width, mark)
    yield from excerpt(sentence, count, width, indent=_INDENT)


def _scored(results: list[PageResult]) -> list[Scored]:
    from cli.views import Scored

    return [
        Scored(r.citation, r.filename, r.page, r.page_label, r.section_path or "", r.relevance_score, r.legs)
        for r in results
    ]
