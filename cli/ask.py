"""ctx ask: a question in, cited context out."""

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
    SourcesOption,
    TokensOption,
    common,
    settings_for,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from cli.views import Scored
    from research.models import ResearchContext

DETAILS = """
On a terminal the answer is laid out for reading. In a pipe stdout is the context alone, ready for a model;
with --json it is one document with sources, scores, what was left out and why.
"""

EPILOG = """
\b
Examples:
  ctx ask "What caused the 2008 crisis?"
  ctx ask "How is the index locked?" --doc manual.pdf --max-tokens 4000
  ctx ask "Wer haftet?" | llm "Answer from these sources, with citations"
  ctx ask "What is new?" --json | jq -r '.sources[] | "\\(.filename):\\(.page)"'
  echo "a question from a file" | ctx ask -
"""


# Of the pages left out, a reader is told the first; JSON has them all.
_NAMED = 3
# A pasted page as a question need not be shown again in full.
_SHOWN = 500


def command(
    ctx: typer.Context,
    *,
    question: QuestionArgument,
    max_tokens: TokensOption = None,
    max_sources: SourcesOption = None,
    num_results: ResultsOption = None,
    mode: ModeOption = None,
    doc: DocOption = None,
    explain: ExplainOption = False,
) -> int:
    from cli.options import check_legs, opened, read_question, tell
    from cli.output import on_terminal, paint, write_document

    given = common(ctx)
    asked = read_question(question)
    settings = settings_for(
        given,
        max_tokens=max_tokens,
        max_sources=max_sources,
        num_results=num_results,
        mode=mode.value if mode else None,
    )
    with opened(settings) as found:
        tell(found.prepare(), given)
        context = found.ask(asked, num_results=num_results, documents=doc, highlights=given.as_json)
    check_legs(context.coverage)
    if given.as_json:
        write_document("ctx.ask/1", context.to_dict())
    elif on_terminal():
        paint(_rendering(context, explain=explain))
    else:
        _write_plain(context, explain=explain)
    if not (given.as_json or on_terminal() or given.quiet):
        _warn(context)
    return _talk(context, quiet=given.quiet, on_stderr=given.as_json or not on_terminal())


def _write_plain(context: ResearchContext, *, explain: bool) -> None:
    from cli.output import block, say, write

    if context.formatted_text:
        write(block(context.formatted_text) + "\n")
    if explain:
        from cli.views import explain_lines, rewrite_lines

        for line in (*rewrite_lines(context.searched, context.rewrites), *explain_lines(_scored(context))):
            say(line)


def _talk(context: ResearchContext, *, quiet: bool, on_stderr: bool) -> int:
    """Notes for a reader who does not see the rendering, and the exit code."""
    from cli.options import notes_on
    from cli.output import complain, say
    from research.errors import NothingFoundError

    if on_stderr and not quiet:
        for note in (*notes_on(context.coverage), *_budget_notes(context)):
            say(f"ctx: note: {note}")
    if context.sources or context.dropped:
        return 0
    nothing = NothingFoundError(
        "nothing found for this question", hint="try other words, --mode hybrid, or see: ctx list"
    )
    complain(nothing, as_json=False)
    return nothing.exit_code


def _budget_notes(context: ResearchContext) -> list[str]:
    """What the budget cost."""
    from cli.output import one_line

    notes = []
    cut = [number for number, source in context.get_citation_map().items() if source.cut]
    if cut:
        notes.append(f"truncated: source {cut[0]} is cut short")
    if context.dropped:
        names = ", ".join(f"{one_line(d.filename)}:{d.page}" for d in context.dropped[:_NAMED])
        more = f" and {len(context.dropped) - _NAMED} more" if len(context.dropped) > _NAMED else ""
        notes.append(f"truncated: left out: {names}{more}")
    if notes:
        notes[-1] += f" (budget {context.max_tokens} tokens; raise it with --max-tokens)"
    return notes


def _warn(context: ResearchContext) -> None:
    """In a pipe, where nobody sees the marks of the JSON or the rendering."""
    from cli.output import say

    for note in _suspicions(context):
        say(f"ctx: note: {note}")


def _suspicions(context: ResearchContext) -> list[str]:
    from cli.output import one_line
    from cli.views import suspicion_note

    return [
        suspicion_note(f"source {number} ({one_line(source.filename)}:{source.page})", source.suspicious)
        for number, source in context.get_citation_map().items()
        if source.suspicious
    ]


def _rendering(context: ResearchContext, *, explain: bool) -> Iterator[RenderableType]:
    from rich.rule import Rule

    from cli.options import notes_on
    from cli.output import phrase
    from cli.views import context_text, explain_table, plain, rewrite_lines, sources_table

    question = phrase(context.query)
    yield plain(question if len(question) <= _SHOWN else f"{question[:_SHOWN]}…", "bold")
    if not context.sources and not context.dropped:
        return
    yield sources_table(_scored(context))
    if explain:
        yield from (plain(line, "dim") for line in rewrite_lines(context.searched, context.rewrites))
        yield explain_table(_scored(context))
    yield Rule(style="dim")
    yield context_text(context.formatted_text)
    yield Rule(style="dim")
    yield plain(f"{context.total_tokens} of {context.max_tokens} tokens", "dim")
    for note in _budget_notes(context):
        yield plain(f"✂ {note}", "bold yellow")
    for note in notes_on(context.coverage):
        yield plain(f"! {phrase(note)}", "yellow")
    for note in _suspicions(context):
        yield plain(f"! {phrase(note)}", "bold red")


def _scored(context: ResearchContext) -> list[Scored]:
    from cli.views import Scored

    return [
        Scored(number, s.filename, s.page, s.page_label, s.section_path or "", s.relevance_score, s.legs)
        for number, s in context.get_citation_map().items()
    ]
