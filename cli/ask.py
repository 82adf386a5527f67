"""ctx ask: a question in, cited context out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.filters import (
    DocOption,
    NotDocOption,
    PagesOption,
    SinceOption,
    TagOption,
    UnderOption,
    UntilOption,
    filters_from,
    given_filters,
)
from cli.options import (
    BatchOption,
    ExplainOption,
    FieldsOption,
    FullOption,
    MaybeQuestionArgument,
    ModeOption,
    NoTextOption,
    PassagesOption,
    RerankerOption,
    ResultsOption,
    SourcesOption,
    TokensOption,
    common,
    settings_for,
)
from research.errors import UsageError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from cli.answer_view import Note
    from cli.fields import Shape
    from cli.layout import Marker
    from cli.options import Common
    from cli.views import Scored
    from research.index import Index
    from research.models import Extent, ResearchContext
    from research.settings import Settings

DETAILS = """
Answers with sentences of your documents, word for word, and the pages they stand on; it writes none of its own. On a
terminal they fit one screen: quotes, sources, what else to type (ctx open 1 shows the page itself). In a pipe stdout is
the context alone, ready for a model; with --json it is one document with sources, scores, what was left out and why.

Where the pages found do not all fit into the budget, each gives the passage that fits the question first, then more
of its page while there is room; […] stands for what is left out.
"""

EPILOG = """
\b
Examples:
  ctx ask "What caused the 2008 crisis?"
  ctx ask "How is the index locked?" --doc manual.pdf --max-tokens 4000
  ctx ask "What is new?" --under ./reports --since 2026-05 --not-doc 'draft*'
  ctx ask "What is the method?" --doc RAPTOR --pages 3-5,8
  ctx ask "Which deductions apply?" --tag tax --tag 2025
  ctx ask "How is the index locked?" --html answer.html
  ctx ask "Wer haftet?" | llm "Answer from these sources, with citations"
  ctx ask "What is new?" --json | jq -r '.sources[] | "\\(.filename):\\(.page)"'
  echo "a question from a file" | ctx ask -
"""

HtmlOption = Annotated[
    str | None,
    typer.Option("--html", metavar="FILE", help="Write the answer as one HTML page with pictures; - is stdout."),
]
ForceOption = Annotated[bool, typer.Option("--force", help="With --html: replace FILE if it exists.")]

# Of the pages left out, a reader is told the first; JSON has them all.
_NAMED = 3


def command(
    ctx: typer.Context,
    *,
    question: MaybeQuestionArgument = None,
    max_tokens: TokensOption = None,
    max_sources: SourcesOption = None,
    num_results: ResultsOption = None,
    mode: ModeOption = None,
    reranker: RerankerOption = None,
    doc: DocOption = None,
    not_doc: NotDocOption = None,
    under: UnderOption = None,
    pages: PagesOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    tag: TagOption = None,
    passages: PassagesOption = False,
    full: FullOption = False,
    explain: ExplainOption = False,
    batch: BatchOption = None,
    fields: FieldsOption = None,
    no_text: NoTextOption = False,
    html: HtmlOption = None,
    force: ForceOption = False,
) -> int:
    from cli.last_answer import remember
    from cli.options import check_legs, opened, read_question, tell
    from cli.output import on_terminal, write_document

    given = common(ctx)
    shape = _shape(fields, no_text=no_text, as_json=given.as_json or batch is not None)
    _check_html(html, force=force, as_json=given.as_json)
    asked = read_question(question or (), quiet=given.quiet) if batch is None else _no_question(question)
    filters = given_filters(doc=doc, not_doc=not_doc, under=under, pages=pages, since=since, until=until, tag=tag)
    settings = settings_for(
        given,
        max_tokens=max_tokens,
        max_sources=max_sources,
        num_results=num_results,
        mode=mode.value if mode else None,
        reranker=reranker,
    )
    with opened(settings) as found:
        if batch is not None:
            return _answer_batch(found, batch, given, shape=shape, num_results=num_results, filters=filters)
        tell(found.prepare(), given)
        context = found.ask(
            asked,
            num_results=num_results,
            filters=filters_from(filters),
            extent=_extent(passages, full),
            highlights=given.as_json or html is not None,
        )
    check_legs(context.coverage)
    remember(found.root, [source.ref for source in context.sources])
    drawn = on_terminal() and not given.as_json and html is None
    if given.as_json:
        write_document("ctx.ask/2", shape.of(context.to_dict()))
    elif html is not None:
        from cli.html_page import write_page

        write_page(html, context, partial(found.matches, question=asked), [note.text for note in _notes(context)])
    elif drawn:
        _show(context, partial(found.matches, question=asked), settings, explain=explain, full=full)
    else:
        _write_plain(context, explain=explain)
    if not (given.as_json or drawn or given.quiet):
        _warn(context)
    return _talk(context, quiet=given.quiet, on_stderr=not drawn)


def _check_html(html: str | None, *, force: bool, as_json: bool) -> None:
    """Raise before anything is searched if the page could not be written."""
    if html is None:
        return
    if as_json:
        raise UsageError("--html and --json are two answers", hint="ask twice, or use --html alone")
    from cli.html_page import check_place

    check_place(html, force=force)


def _shape(fields: str | None, *, no_text: bool, as_json: bool) -> Shape:
    from cli.fields import shape_for

    return shape_for("ask", fields, no_text=no_text, as_json=as_json)


def _no_question(words: list[str] | None) -> str:
    if words:
        raise UsageError("--batch reads the questions from its file", hint="leave the question out, or --batch")
    return ""


def _answer_batch(
    index: Index, name: str, given: Common, *, shape: Shape, num_results: int | None, filters: Mapping[str, Any]
) -> int:
    from cli.batch import Line, answer_all, opened_lines, read_lines
    from cli.options import check_legs, tell

    def answer(line: Line) -> ResearchContext:
        restricted = filters_from({**filters, **line.filters})
        options = {"num_results": num_results, **line.options}
        context = index.ask(line.question, filters=restricted, highlights=True, **options)
        check_legs(context.coverage)
        return context

    def render(context: ResearchContext) -> dict[str, Any]:
        return shape.of({"schema": "ctx.ask/2", **context.to_dict()})

    with opened_lines(name, quiet=given.quiet) as stream:
        tell(index.prepare(), given)
        return answer_all(read_lines(stream), answer, render, quiet=given.quiet)


def _extent(passages: bool, full: bool) -> Extent:
    if passages and full:
        raise UsageError("--passages and --full exclude each other", hint="leave one of them out")
    return "passages" if passages else "pages" if full else "fit"


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
    cut = [str(number) for number, source in context.get_citation_map().items() if source.cut and context.truncated]
    if cut:
        which = f"source {cut[0]} is" if len(cut) == 1 else f"sources {', '.join(cut[:-1])} and {cut[-1]} are"
        notes.append(f"truncated: {which} shown in part")
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
    """One note for all of them: which they are, and what was seen."""
    from cli.output import one_line
    from cli.views import suspicion_note

    seen = {number: source for number, source in context.get_citation_map().items() if source.suspicious}
    if not seen:
        return []
    names = [f"{number} ({one_line(source.filename)}:{source.page})" for number, source in seen.items()]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    signs = dict.fromkeys(sign for source in seen.values() for sign in source.suspicious)
    which = f"{'source' if len(names) == 1 else 'sources'} {', '.join(names[:_NAMED])}{more}"
    return [suspicion_note(which, list(signs))]


def _show(context: ResearchContext, mark: Marker, settings: Settings, *, explain: bool, full: bool) -> None:
    """On a terminal: one screen, or with `full` the pages in a pager."""
    from cli.answer_view import Screen, answer_lines
    from cli.links import has_links
    from cli.output import paint, painted, screen_size

    if full:
        from cli.full_view import full_rendering
        from cli.pager import page

        # without links: an older less shows their escapes
        page(painted(full_rendering(context, Screen(*screen_size()), mark, _notes(context))))
    elif context.sources or context.dropped:
        paint(answer_lines(context, Screen(*screen_size(), has_links(settings.links)), mark, _notes(context)))
    if explain:
        paint(_explanation(context))


def _notes(context: ResearchContext) -> list[Note]:
    from cli.answer_view import Note
    from cli.options import notes_on

    return [
        *(Note(f"✂ {note}", "bold yellow") for note in _budget_notes(context)),
        *(Note(f"! {note}", "yellow") for note in notes_on(context.coverage)),
        *(Note(f"! {note}", "bold red") for note in _suspicions(context)),
    ]


def _explanation(context: ResearchContext) -> Iterator[RenderableType]:
    from cli.views import explain_table, plain, rewrite_lines

    yield from (plain(line, "dim") for line in rewrite_lines(context.searched, context.rewrites))
    yield explain_table(_scored(context))


def _scored(context: ResearchContext) -> list[Scored]:
    from cli.views import Scored

    return [
        Scored(number, s.filename, s.page, s.page_label, s.section_path or "", s.relevance_score, s.legs)
        for number, s in context.get_citation_map().items()
    ]
