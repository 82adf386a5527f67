"""ctx search: ranked pages with a snippet, without the context."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import typer

from cli.options import (
    DocOption,
    ExplainOption,
    ModeOption,
    QuestionArgument,
    ResultsOption,
    common,
    settings_for,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from cli.views import Scored
    from research.models import PageResult, SearchResults

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


def command(
    ctx: typer.Context,
    *,
    question: QuestionArgument,
    num_results: ResultsOption = None,
    mode: ModeOption = None,
    doc: DocOption = None,
    explain: ExplainOption = False,
) -> int:
    from cli.options import check_legs, notes_on, opened, read_question, tell
    from cli.output import complain, on_terminal, paint, say, write_document
    from research.errors import NothingFoundError

    given = common(ctx)
    asked = read_question(question)
    settings = settings_for(given, num_results=num_results, mode=mode.value if mode else None)
    with opened(settings) as asked_of:
        tell(asked_of.prepare(), given)
        found = asked_of.search(asked, documents=doc, highlights=given.as_json)
    check_legs(found.coverage)
    if given.as_json:
        write_document("ctx.search/1", found.to_dict())
    elif on_terminal():
        paint(_rendering(found, explain=explain))
    else:
        _write_plain(found, explain=explain)
    if not given.quiet:
        for note in notes_on(found.coverage):
            say(f"ctx: note: {note}")
        for note in [] if given.as_json else _suspicions(found.results):
            say(f"ctx: note: {note}")
    if found.results:
        return 0
    nothing = NothingFoundError("nothing found for this question", hint="try other words, or see: ctx list")
    complain(nothing, as_json=False)
    return nothing.exit_code


def _suspicions(results: list[PageResult]) -> list[str]:
    from cli.output import one_line
    from cli.views import suspicion_note

    return [
        suspicion_note(f"result {found.rank} ({one_line(found.filename)}:{found.page})", found.suspicious)
        for found in results
        if found.suspicious
    ]


def _write_plain(found: SearchResults, *, explain: bool) -> None:
    from cli.output import phrase, say, write_line

    for result in found.results:
        write_line(result.rank, f"{result.score:.3f}", f"{result.filename}:{result.page}", phrase(result.snippet))
    if explain:
        from cli.views import explain_lines, rewrite_lines

        for line in (*rewrite_lines(found.searched, found.rewrites), *explain_lines(_scored(found.results))):
            say(line)


def _rendering(found: SearchResults, *, explain: bool) -> Iterator[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    from cli.output import one_line, phrase
    from cli.views import explain_table, page_name, plain, rewrite_lines

    for result in found.results:
        yield Text.assemble(
            (f"{result.rank:>2}. ", "bold"),
            (one_line(result.filename), "bold cyan"),
            f"  page {page_name(result.page, result.page_label)}",
            (f"  {result.score:.3f}", "dim"),
        )
        if result.section_path:
            yield Padding(plain(phrase(result.section_path), "dim"), (0, 0, 0, 4))
        yield Padding(plain(phrase(result.snippet)), (0, 0, 1, 4))
    if explain:
        yield from (plain(line, "dim") for line in rewrite_lines(found.searched, found.rewrites))
    if explain and found.results:
        yield explain_table(_scored(found.results))


def _scored(results: list[PageResult]) -> list[Scored]:
    from cli.views import Scored

    return [Scored(r.rank, r.filename, r.page, r.page_label, r.section_path or "", r.score, r.legs) for r in results]
